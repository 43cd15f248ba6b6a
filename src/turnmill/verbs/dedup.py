"""dedup: of rows that say the same, one stays."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.dedup import Entry, Loser, Place, duplicates
from turnmill.errors import Rejected
from turnmill.files import quarantine
from turnmill.files.canonical import readmit
from turnmill.files.quarantine import Left, from_conversation
from turnmill.files.tables import TableWriter, batches
from turnmill.options import Dedup
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.filter import IndexRow, read_index
from turnmill.verbs.near import NearFiles, read_known

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 4
DUPLICATES = "duplicates.parquet"
MANY = 0.2
"""Of a larger share of a source, near-duplicates are named: a passage that rows share may make them so."""


class DedupTask(NamedTuple):
    """All sources at once: an id may come back anywhere."""

    indexes: tuple[str, ...]
    conversations: tuple[str, ...]
    """The files of checked rows, one to each index."""
    sources: tuple[str, ...]
    """Names of the sources, in the order of the recipe."""
    dedup: Dedup
    fingerprint: str
    near: NearFiles | None = None
    """Where `dedup.by` asks for near-duplicates."""


class Duplicate(NamedTuple):
    """A row that leaves, and the id and row that it repeats."""

    left: Left
    winner_id: str
    winner_row: int
    similarity: float | None
    """Of a near-duplicate."""


@cache
def schema() -> pa.Schema:
    """Quarantine's columns, the winner's id and row, and how similar it is where that was asked."""
    import pyarrow as pa

    winner = [pa.field("winner_id", pa.string(), nullable=False), pa.field("winner_row", pa.int64(), nullable=False)]
    return pa.schema([*quarantine.schema(), *winner, pa.field("similarity", pa.float64())])


def _to_table(rows: list[Duplicate]) -> pa.Table:
    import pyarrow as pa

    table = quarantine.to_table([row.left for row in rows])
    names = ("winner_id", "winner_row", "similarity")
    winners = [pa.array([getattr(row, name) for row in rows], schema().field(name).type) for name in names]
    return pa.Table.from_arrays([*table.columns, *winners], schema=schema())


def step_of(filters: Sequence[Step], options: Dedup, near: NearFiles | None = None) -> Step:
    """The recipe of the losers."""
    inputs = tuple(step.fingerprint for step in filters)
    return Step("dedup", VERSION, {"by": list(options.by)}, (*inputs, near.fingerprint) if near else inputs)


def run_shard(task: DedupTask, folder: Path) -> ShardResult:
    """Write the losers of all sources."""
    losers, rows = _losers(task) if task.dedup.by else ([], {})
    by_source: dict[str, Counter[str]] = {}
    with TableWriter(folder / DUPLICATES, schema(), _to_table) as out:
        for duplicate in _duplicates(task, losers, rows):
            counts = by_source.setdefault(duplicate.left.source, Counter())
            counts["rows/duplicate"] += 1
            counts[f"codes/{duplicate.left.code}"] += 1
            out.write(duplicate)
    together: Counter[str] = Counter()
    for counts in by_source.values():
        together.update(counts)
    return ShardResult(dict(together), {"by_source": by_source})


def _losers(task: DedupTask) -> tuple[list[Loser], dict[Place, int]]:
    near = read_known(task.near) if task.near else None
    wanted = _repeated(task.indexes).union(near.texts if near else ())
    order = {name: number for number, name in enumerate(task.sources)}
    entries = [
        Entry(row.id, row.weights, _place(order, row), row.exchange, row.row)
        for row in (read_index([Path(path) for path in task.indexes]) if wanted else ())
        if row.row in wanted and row.kept
    ]
    return duplicates(entries, task.dedup.by, near), {entry.place: entry.row for entry in entries}


def _repeated(indexes: Sequence[str]) -> set[int]:
    """Numbers of the rows whose id or first exchange another row may have.

    24 bytes a row are held: the others can neither leave nor make one leave, and are never looked at again.
    """
    import numpy as np

    rows, keys = array("q"), (array("Q"), array("Q"))
    for path in indexes:
        for batch in batches(Path(path), ["row", "kept", "id", "exchange"]):
            kept = batch.filter(batch.column("kept"))
            rows.extend(kept.column("row").to_pylist())
            for held, name in zip(keys, ("id", "exchange"), strict=True):
                held.extend(int(key[:16] or "0", 16) for key in kept.column(name).to_pylist())
    found = np.zeros(len(rows), dtype=np.bool_)
    for held in keys:
        key = np.frombuffer(held, dtype=np.uint64)
        _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
        found |= (counts[inverse] > 1) & (key != 0)
    return set(np.frombuffer(rows, dtype=np.int64)[found].tolist())


def _place(order: dict[str, int], row: IndexRow) -> Place:
    return Place(order[row.source], row.source_file, row.source_line)


def _duplicates(task: DedupTask, losers: list[Loser], rows: dict[Place, int]) -> Iterator[Duplicate]:
    """The losers' rows, read again file by file where there are any."""
    wanted = {rows[loser.entry.place]: loser for loser in losers}
    for path, index in zip(task.conversations, task.indexes, strict=True):
        if not any(row in wanted for batch in batches(Path(index), ["row"]) for row in batch.column("row").to_pylist()):
            continue
        for batch in batches(Path(path)):
            if not wanted.keys() & set(batch.column("row").to_pylist()):
                continue
            for conversation in readmit(batch):
                loser = wanted.get(conversation.meta["row"])
                if loser is not None:
                    yield _duplicate(conversation, loser, rows[loser.winner.place], task.fingerprint)


def _duplicate(conversation: Any, loser: Loser, winner_row: int, fingerprint: str) -> Duplicate:
    winner = loser.winner.place
    says = "says the same as" if loser.similarity is None else f"is {loser.similarity:.2f} similar to"
    fault = Rejected(loser.code, f"{says} row {winner_row} ({winner.file}:{winner.line})")
    left = from_conversation(conversation, fault, stage="dedup", config=fingerprint, class_="duplicate")
    return Duplicate(left, loser.winner.id, winner_row, loser.similarity)


def warnings(result: ShardResult, rows: Mapping[str, int]) -> list[str]:
    """Sources of which so many rows leave as near-duplicates that a person should look.

    Args:
        result: of `run_shard`.
        rows: source → its checked rows.
    """
    found = {name: counts.get("codes/near-duplicate", 0) for name, counts in result.extra["by_source"].items()}
    return [
        f"source {name!r}: {lost:,} of {rows[name]:,} rows left as near-duplicates; where they share a long passage "
        "and ask other things of it, raise dedup.near.threshold (turnmill quarantine show OUT --duplicates)"
        for name, lost in found.items()
        if lost > MANY * rows[name]
    ]


def lost_rows(path: Path, first: int = 0, last: int = 2**63 - 1) -> set[int]:
    """Numbers of the rows from `first` to `last` that left, of a file of such rows."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["row"], filters=[("row", ">=", first), ("row", "<=", last)])
    return set(table.column("row").to_pylist())
