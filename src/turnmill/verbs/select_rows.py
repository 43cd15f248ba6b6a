"""select, a shard's part: what was decided of its rows is done to its files."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Checked
from turnmill.errors import Rejected
from turnmill.files.canonical import readmit
from turnmill.files.examples import mapped, run_sizes
from turnmill.files.examples import schema as examples_schema
from turnmill.files.quarantine import from_conversation
from turnmill.files.selection import SELECTION
from turnmill.files.tables import BatchWriter, batches
from turnmill.rendered import KINDS
from turnmill.selection import CODES
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.built import Builder, Built
from turnmill.verbs.check import left_writer
from turnmill.verbs.split import Side

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
CONTROL = "control"
"""The side of the random choice beside the selection."""
TAKEN: tuple[tuple[Side, str], ...] = (("train", "train"), ("train", CONTROL), ("eval", "eval"))
"""(side of the tokenized rows, side that is written)."""


class TakeTask(NamedTuple):
    """One tokenized shard, and where its rows' decisions lie."""

    folder: str
    """Of the tokenized shard."""
    number: int
    """Of the shard in the decision."""
    selection: str
    samples: list[dict[str, Any]]
    """Rows of the shard whose trained text is shown to people."""
    fingerprint: str


class _Decided(NamedTuple):
    """What was decided of the rows of one side of a shard, in their order."""

    codes: NDArray[np.int8]
    in_control: NDArray[np.bool_]
    examples: NDArray[np.int32]
    values: dict[str, NDArray[Any]]

    def mask(self, side: str) -> NDArray[np.bool_]:
        """(rows,) which are written to a side."""
        return self.in_control if side == CONTROL else self.codes == 0


def step_of(tokenize: Step, select: Step) -> Step:
    """The recipe of one source's rows that stay."""
    return Step("select-rows", VERSION, {}, (tokenize.fingerprint, select.fingerprint))


def build_sources(builder: Builder, tokenized: Mapping[str, Built], selection: Built) -> dict[str, Built]:
    """What stays of every source."""
    decisions = str(selection.file(SELECTION)[0])
    numbers = itertools.count()
    found = {}
    for name, built in tokenized.items():
        step = step_of(built.step, selection.step)
        tasks = [
            TakeTask(str(folder), next(numbers), decisions, result.extra["samples"], step.fingerprint)
            for folder, result in zip(built.file(""), built.results, strict=True)
        ]
        found[name] = builder.build(step, tasks, run_shard)
    return found


def run_shard(task: TakeTask, folder: Path) -> ShardResult:
    """Write the examples and conversations that stay, by side, and the rows that leave."""
    counts: Counter[str] = Counter()
    kept: set[str] = set()
    decided = {side: _decided(task, side) for side in ("train", "eval")}
    for source_side, side in TAKEN:
        of = decided[source_side]
        mask = of.mask(side)
        _write_examples(Path(task.folder, f"{source_side}.arrow"), folder / f"{side}.arrow", mask, of, (side, counts))
        ids = _write_rows(Path(task.folder, f"{source_side}.parquet"), folder / f"{side}.parquet", mask)
        kept |= set(ids) if side == "train" else set()
        if side != CONTROL:
            counts[f"rows/{'accepted' if side == 'train' else 'eval'}"] += int(mask.sum())
    _write_left(task, folder, decided, counts)
    samples = [sample for sample in task.samples if sample.get("id") in kept]
    return ShardResult({name: count for name, count in counts.items() if count}, {"samples": samples})


def _decided(task: TakeTask, side: str) -> _Decided:
    import pyarrow.parquet as pq

    table = pq.read_table(task.selection, filters=[("side", "=", side), ("shard", "=", task.number)])
    values = {name: table.column(name).to_numpy() for name in ("perplexity", "tokens")}
    return _Decided(
        table.column("code").to_numpy(),
        table.column("in_control").to_numpy(zero_copy_only=False),
        table.column("examples").to_numpy(),
        values,
    )


def _write_examples(
    source: Path, target: Path, mask: NDArray[np.bool_], of: _Decided, counted: tuple[str, Counter[str]]
) -> None:
    import pyarrow as pa

    of_examples = np.repeat(mask, of.examples)
    start = 0
    with pa.OSFile(str(target), "wb") as file, pa.ipc.new_file(file, examples_schema()) as writer:
        for batch in mapped(source):
            kept = batch.filter(pa.array(of_examples[start : start + batch.num_rows]))
            start += batch.num_rows
            if kept.num_rows:
                writer.write_batch(kept)
                _count(kept, *counted)


def _count(batch: pa.RecordBatch, side: str, counts: Counter[str]) -> None:
    """Examples, turns, and tokens by kind, as `tokenize` counts them."""
    import pyarrow.compute as pc

    counts[f"{side}/examples"] += batch.num_rows
    turns = pc.list_value_length(batch.column("turn_ends")).to_numpy()
    counts[f"{side}/turns"] += int(turns.sum())
    for number, count in enumerate(np.bincount(turns)):
        counts[f"{side}/examples-of-turns/{number}"] += int(count)
    sizes = run_sizes(batch)
    kinds = batch.column("run_kinds").flatten().to_numpy()
    trained = batch.column("run_weights").flatten().to_numpy() > 0
    for kind, count in enumerate(np.bincount(kinds, weights=sizes, minlength=len(KINDS))):
        counts[f"{side}/tokens/{KINDS[kind]}"] += int(count)
    for kind, count in enumerate(np.bincount(kinds, weights=sizes * trained, minlength=len(KINDS))):
        counts[f"{side}/trained/{KINDS[kind]}"] += int(count)


def _write_rows(source: Path, target: Path, mask: NDArray[np.bool_]) -> list[str]:
    """The conversations that stay; gives their ids."""
    import pyarrow.parquet as pq

    writer = BatchWriter(target, pq.read_schema(source))
    ids: list[str] = []
    start = 0
    for batch in batches(source):
        indices = np.flatnonzero(mask[start : start + batch.num_rows])
        start += batch.num_rows
        writer.write(batch, indices.tolist())
        ids += batch.column("id").take(indices).to_pylist()
    writer.close()
    return ids


def _write_left(task: TakeTask, folder: Path, decided: dict[str, _Decided], counts: Counter[str]) -> None:
    with left_writer(folder) as left:
        for side, of in decided.items():
            start = 0
            for batch in batches(Path(task.folder, f"{side}.parquet")):
                places = start + np.flatnonzero(of.codes[start : start + batch.num_rows])
                rows = readmit(batch.take(places - start))
                start += batch.num_rows
                for place, row in zip(places.tolist(), rows, strict=True):
                    left.write(_left(row, of, place, task.fingerprint))
                    counts["rows/unselected"] += 1
                    counts[f"codes/{CODES[of.codes[place]]}"] += 1


def _left(row: Checked, of: _Decided, place: int, fingerprint: str) -> Any:
    code = CODES[of.codes[place]]
    perplexity, tokens = float(of.values["perplexity"][place]), int(of.values["tokens"][place])
    said = f"perplexity {perplexity:.4g}" if np.isfinite(perplexity) else "no score"
    fault = Rejected(code, f"{tokens:,} tokens, {said}")
    return from_conversation(row, fault, stage="select", config=fingerprint, class_="unselected")
