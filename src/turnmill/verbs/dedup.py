"""dedup: of rows that say the same, one stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 3
DUPLICATES = "duplicates.parquet"


class DedupTask(NamedTuple):
    """All sources at once: an id may come back anywhere."""

    indexes: tuple[str, ...]
    conversations: tuple[str, ...]
    """The files of checked rows, one to each index."""
    sources: tuple[str, ...]
    """Names of the sources, in the order of the recipe."""
    dedup: Dedup
    fingerprint: str


class Duplicate(NamedTuple):
    """A row that leaves, and the id and row that it repeats."""

    left: Left
    winner_id: str
    winner_row: int


@cache
def schema() -> pa.Schema:
    """Quarantine's columns, and the winner's id and row."""
    import pyarrow as pa

    winner = [pa.field("winner_id", pa.string(), nullable=False), pa.field("winner_row", pa.int64(), nullable=False)]
    return pa.schema([*quarantine.schema(), *winner])


def _to_table(rows: list[Duplicate]) -> pa.Table:
    import pyarrow as pa

    table = quarantine.to_table([row.left for row in rows])
    winners = {"winner_id": [row.winner_id for row in rows], "winner_row": [row.winner_row for row in rows]}
    columns = [*table.columns, *(pa.array(values) for values in winners.values())]
    return pa.Table.from_arrays(columns, schema=schema())


def step_of(filters: Sequence[Step], options: Dedup) -> Step:
    """The recipe of the losers."""
    return Step("dedup", VERSION, {"by": list(options.by)}, tuple(step.fingerprint for step in filters))


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
    order = {name: number for number, name in enumerate(task.sources)}
    rows: dict[Place, int] = {}
    entries: list[Entry] = []
    for row in read_index([Path(path) for path in task.indexes]):
        if row.kept:
            place = _place(order, row)
            rows[place] = row.row
            entries.append(Entry(row.id, row.weights, place, row.exchange))
    return duplicates(entries, task.dedup.by), rows


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
    fault = Rejected(loser.code, f"says the same as row {winner_row} ({winner.file}:{winner.line})")
    left = from_conversation(conversation, fault, stage="dedup", config=fingerprint, class_="duplicate")
    return Duplicate(left, loser.winner.id, winner_row)


def lost_rows(path: Path) -> set[int]:
    """Numbers of the rows that left as duplicates."""
    return {row for batch in batches(path, ["row"]) for row in batch.column("row").to_pylist()}
