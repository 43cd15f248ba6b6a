"""Named sets of examples to score, and which of them: drawn by seed, the same whatever stands beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from turnmill.files.examples import Examples
from turnmill.files.prepared import PreparedData, Side
from turnmill.rendered import KINDS, Example
from turnmill.tokens.labels import loss_weights, per_token

ANSWER, CALL = KINDS.index("answer"), KINDS.index("call")


class Item(NamedTuple):
    """One example as it is scored."""

    row_id: str
    part: int
    input_ids: NDArray[np.int32]
    """(tokens,)."""
    weights: NDArray[np.float32]
    """(tokens,) of the loss; 0 = ignored."""
    kinds: NDArray[np.int8]
    """(tokens,) index in `KINDS`."""
    final_from: int
    """Token from which on answers are the last turn's; behind all tokens where the example has no final answer."""


class Items(Protocol):
    """Examples by number, read when they are asked for."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, number: int) -> Item:
        """One of them."""

    def lengths(self) -> NDArray[np.int64]:
        """(items,) tokens of each."""


@dataclass(frozen=True)
class EvalSet:
    """What is scored under one name."""

    name: str
    items: Items
    importance: float | None = None
    """Share in the composite, beside the other sets'; 0: only watched; None: it counts by its tokens."""
    regression_floor: float | None = None
    """A loss above it is an alarm."""


class StoredItems:
    """Examples of a prepared folder.

    Args:
        examples: all of a side.
        numbers: which of them.
        last_parts: numbers of those that end their rows.
    """

    def __init__(self, examples: Examples, numbers: NDArray[np.int64], last_parts: frozenset[int]) -> None:
        self._examples, self._numbers, self._last_parts = examples, numbers, last_parts
        self._lengths = np.array(examples.lengths(), dtype=np.int64)[numbers]

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> Item:
        stored = int(self._numbers[number])
        return item_of(self._examples.row(stored), is_last=stored in self._last_parts)

    def lengths(self) -> NDArray[np.int64]:
        """(items,) tokens of each."""
        return self._lengths


class MadeItems:
    """Examples that lie in memory."""

    def __init__(self, examples: Sequence[Example]) -> None:
        last = {example.row_id: number for number, example in enumerate(examples)}
        self._items = [item_of(columns_of(one), is_last=last[one.row_id] == n) for n, one in enumerate(examples)]

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, number: int) -> Item:
        return self._items[number]

    def lengths(self) -> NDArray[np.int64]:
        """(items,) tokens of each."""
        return np.array([len(item.input_ids) for item in self._items], dtype=np.int64)


def columns_of(example: Example) -> dict[str, Any]:
    """What of an example's stored columns is scored."""
    return {
        "row_id": example.row_id,
        "part": example.part,
        "input_ids": example.input_ids,
        "run_ends": [run.end for run in example.runs],
        "run_weights": [run.weight for run in example.runs],
        "run_kinds": [KINDS.index(run.kind) for run in example.runs],
        "turn_ends": example.turn_ends,
    }


def item_of(row: dict[str, Any], *, is_last: bool) -> Item:
    """A stored example as it is scored.

    Args:
        row: its columns.
        is_last: whether it is the part that its row ends with.
    """
    ends = row["run_ends"]
    kinds = per_token(ends, np.asarray(row["run_kinds"], dtype=np.int8)).astype(np.int8, copy=False)
    weights = loss_weights(ends, row["run_weights"])
    ids = np.asarray(row["input_ids"], dtype=np.int32)
    start = _final_from(kinds, weights, [int(end) for end in row["turn_ends"]]) if is_last else len(ids)
    return Item(row["row_id"], int(row["part"]), ids, weights, kinds, start)


def _final_from(kinds: NDArray[np.int8], weights: NDArray[np.float32], turn_ends: Sequence[int]) -> int:
    """Where the last trained turn begins; the end where it calls a tool, and of a raw text, all of which trains."""
    start = turn_ends[-2] if len(turn_ends) > 1 else 0
    calls = bool(((kinds[start:] == CALL) & (weights[start:] > 0)).any())
    return len(kinds) if calls or not turn_ends or bool((weights > 0).all()) else start


def prepared_sets(
    prepared: PreparedData, side: Side = "eval", name: str | None = None, *, samples: int | None = None, seed: int = 0
) -> list[EvalSet]:
    """A set for each source that has rows on a side, or one of all rows; none where there are none.

    Args:
        prepared: OUT.
        side: whose rows.
        name: of the one set; None: one a source, named for it.
        samples: rows of each set; None: all.
        seed: of the draw.
    """
    examples = prepared.examples(side)
    row_ids: list[str] = []
    sources: list[str] = []
    for batch in examples.batches():
        row_ids += batch.column("row_id").to_pylist()
        sources += batch.column("source").to_pylist() if name is None else [name] * batch.num_rows
    last = frozenset({row_id: number for number, row_id in enumerate(row_ids)}.values())
    found = []
    for each in dict.fromkeys(sources):
        own = [number for number, source in enumerate(sources) if source == each]
        drawn = sampled([row_ids[number] for number in own], samples, seed)
        found.append(EvalSet(each, StoredItems(examples, np.array(own, dtype=np.int64)[drawn], last)))
    return found


def made_set(name: str, examples: Iterable[Example], *, samples: int | None = None, seed: int = 0) -> EvalSet:
    """A set of examples that lie in memory.

    Args:
        name: what it is called.
        examples: of whole rows.
        samples: rows; None: all.
        seed: of the draw.
    """
    held = list(examples)
    drawn = sampled([example.row_id for example in held], samples, seed)
    return EvalSet(name, MadeItems([held[number] for number in drawn.tolist()]))


def sampled(row_ids: Sequence[str], samples: int | None, seed: int) -> NDArray[np.int64]:
    """Places of the examples of `samples` rows, in order: the rows whose ids hash lowest with the seed.

    So a row that is added, or in another order, changes the draw by itself alone.
    """
    if samples is None:
        return np.arange(len(row_ids), dtype=np.int64)
    chosen = set(sorted(set(row_ids), key=lambda row_id: (_rank(row_id, seed), row_id))[:samples])
    return np.array([place for place, row_id in enumerate(row_ids) if row_id in chosen], dtype=np.int64)


def _rank(row_id: str, seed: int) -> int:
    return xxhash.xxh3_64_intdigest(f"{seed} {row_id}".encode())
