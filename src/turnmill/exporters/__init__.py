"""Exporters: a file each, prepared data as another tool takes them.

An exporter writes files through the `Exporting` that it is given, counts what its target has no form for, and says how
the target loads what it wrote:

    @exporter("my-trainer")
    def to_my_trainer(exporting: Exporting) -> Howto:
        \"\"\"My trainer's rows: one line of tokens and labels an example.\"\"\"
        for side in exporting.sides:
            exporting.lines(f"{side}.jsonl", (... for example in exporting.examples(side)))
        return Howto("config.yaml", "data: train.jsonl")
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from turnmill.conversation import Checked, Json
from turnmill.dialects.writing import Said, said_together
from turnmill.errors import Rejected
from turnmill.files.prepared import PreparedData, Side
from turnmill.registry import Registry
from turnmill.rendered import Example
from turnmill.tokens.labels import IGNORE, labels, loss_weights

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

WeightField = Literal["weight", "loss", "loss_weight", "train", "trainable"]
SIDES: tuple[Side, ...] = ("train", "eval")
BATCH_ROWS = 1_000
LOAD_JSON = """from datasets import load_dataset

data = load_dataset("json", data_files="{file}", split="train")
"""
UNSAYABLE = "rows the target has no form for"


class Howto(NamedTuple):
    """How a target loads what was written."""

    file: str
    """Name of the file that says so to the target."""
    content: str


class Trains(NamedTuple):
    """What of a conversation trains, as its examples have it."""

    messages: frozenset[int]
    """Numbers, in the recorded list, of the messages that train."""
    reasoning: bool
    """Whether reasoning trains wherever it stands in them."""
    weights: dict[int, float]
    """Message → its weight, where that is not 1."""


NOTHING = Trains(frozenset(), True, {})


class Exporting:
    """Prepared data on their way out.

    Args:
        data: what was prepared.
        folder: an empty folder that the files go to.
        weight_field: name of the field that says whether a message trains, where the target leaves it open.

    Attributes:
        lost: what the target has no form for → rows, or messages, that have it.
        rows: file → rows.
    """

    def __init__(self, data: PreparedData, folder: Path, weight_field: WeightField = "weight") -> None:
        self.data, self.folder, self.weight_field = data, folder, weight_field
        self.lost: Counter[str] = Counter()
        self.rows: dict[str, int] = {}

    @property
    def sides(self) -> list[Side]:
        """Those that hold examples."""
        return [side for side in SIDES if len(self.data.examples(side))]

    def examples(self, side: Side) -> Iterator[Example]:
        """The training examples of a side, in order."""
        found = self.data.examples(side)
        return (found[number] for number in range(len(found)))

    def conversations(self, side: Side) -> Iterator[tuple[Checked, Trains]]:
        """The conversations behind them, in order, and what of each trains."""
        trained = self._trained(side)
        for row in self.data.conversations(side):
            yield row, trained.get(row.id, NOTHING)

    def _trained(self, side: Side) -> dict[str, Trains]:
        """Row → what trains, over all its parts."""
        found: dict[str, Trains] = {}
        for example in self.examples(side):
            ours = found.get(example.row_id, NOTHING)
            trained = [run for run in example.runs if run.weight > 0 and run.kind != "stop"]
            silent = any(run.kind == "reasoning" and run.weight == 0 for run in example.runs)
            weights = {run.message: run.weight for run in trained if run.weight != 1}
            found[example.row_id] = Trains(
                ours.messages | {run.message for run in trained}, ours.reasoning and not silent, ours.weights | weights
            )
        return found

    def lose(self, what: str, count: int = 1) -> None:
        """Count what the target has no form for."""
        if count:
            self.lost[what] += count

    def lines(self, name: str, records: Iterable[Json]) -> None:
        """Write records as JSON lines."""
        count = 0
        path = self._path(name)
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                count += 1
        self.rows[name] = count

    def array(self, name: str, records: Iterable[Json]) -> None:
        """Write records as one JSON array, one to a line."""
        count = 0
        with self._path(name).open("w", encoding="utf-8", newline="\n") as file:
            for record in records:
                file.write(("[\n" if not count else ",\n") + json.dumps(record, ensure_ascii=False))
                count += 1
            file.write("\n]\n" if count else "[]\n")
        self.rows[name] = count

    def table(self, name: str, schema: pa.Schema, rows: Iterable[dict[str, Sequence[float]]]) -> None:
        """Write rows as Parquet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        count, held = 0, list[dict[str, Sequence[float]]]()
        with pq.ParquetWriter(self._path(name), schema, compression="zstd") as out:
            for row in rows:
                held.append(row)
                count += 1
                if len(held) == BATCH_ROWS:
                    out.write_table(pa.Table.from_pylist(held, schema=schema))
                    held = []
            out.write_table(pa.Table.from_pylist(held, schema=schema))
        self.rows[name] = count

    def pickled(self, name: str, records: Iterable[dict[str, Json]]) -> None:
        """Write records as numpy stores an array of objects; all of them are held in memory."""
        import numpy as np

        found = list(records)
        array = np.empty(len(found), dtype=object)
        array[:] = found
        np.save(self._path(name), array, allow_pickle=True)
        self.rows[name] = len(found)

    def text(self, name: str, content: str) -> None:
        """Write a text."""
        self._path(name).write_text(content, encoding="utf-8")

    def _path(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


Exporter = Callable[[Exporting], Howto]

exporters: Registry[Exporter] = Registry("exporters")
exporter = exporters.register


def trained_messages(conversation: Checked, trains: Trains) -> list[tuple[Said, bool]]:
    """What each message of a target can say at once, and whether it trains."""
    return [
        (said, said.role == "assistant" and said.recorded in trains.messages) for said in said_together(conversation)
    ]


def sayable(
    rows: Iterable[tuple[Checked, Trains]], say: Callable[[Checked, Trains], Json], lose: Callable[[str], None]
) -> Iterator[Json]:
    """The records of the rows that a target can say; the others are counted by why it cannot."""
    for conversation, trains in rows:
        try:
            yield say(conversation, trains)
        except Rejected:
            lose(UNSAYABLE)


def labels_and_weights(example: Example) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """(tokens,) labels, not shifted, -100 where nothing trains; and (tokens,) loss weights, 0 there.

    The first token of an example is predicted from nothing: it never trains.
    """
    ends, run_weights = [run.end for run in example.runs], [run.weight for run in example.runs]
    weights = loss_weights(ends, run_weights).copy()
    found = labels(example.input_ids, ends, run_weights).copy()
    weights[:1], found[:1] = 0, IGNORE
    return found, weights
