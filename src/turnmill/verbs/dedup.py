"""dedup: of rows that say the same, one stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.errors import Rejected
from turnmill.files import quarantine
from turnmill.files.canonical import readmit
from turnmill.files.quarantine import Left, from_conversation
from turnmill.files.tables import RegroupedWriter, TableWriter, batches
from turnmill.options import Dedup
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.built import Builder, Built
from turnmill.verbs.near import NearFiles
from turnmill.verbs.partitions import (
    Part,
    RunStage,
    in_folder,
    in_steps,
    part_batches,
    partitions_of,
    parts_of,
    rows_of,
)
from turnmill.verbs.repeats import Losing, losers_of, read_losers

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 4
LEAVING_VERSION = 1
LEAVING_ROWS = 200_000
"""Rows of which one task reads the losers again."""
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
    partitions: int = 0
    """Ranges of keys that are looked at on their own; 0: as many as there are rows for. No byte hangs on it."""


class LeavingTask(NamedTuple):
    """Some checked rows."""

    parts: tuple[Part, ...]
    indexes: tuple[str, ...]
    """The file of the index that stands beside each part."""
    losers: tuple[str, ...]
    fingerprint: str


class MergeTask(NamedTuple):
    """The files of losers, in the order of the rows."""

    duplicates: tuple[str, ...]


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


def build(builder: Builder, step: Step, task: DedupTask) -> Built:
    """The losers, found by partition where so many rows need more than one, else by one task; the bytes are the same.

    Args:
        builder: what builds steps.
        step: of `step_of`.
        task: all of it.
    """
    if not builder.has(step) and (count := builder.partitions or partitions_of(rows_of(task.indexes))) > 1:
        task = task._replace(partitions=count)
        filters = [made_by for made_by in step.inputs if task.near is None or made_by != task.near.fingerprint]
        return builder.build(step, [_leaving(in_steps(builder), task, filters)], merge_shard)
    return builder.build(step, [task], run_shard)


def run_shard(task: DedupTask, folder: Path) -> ShardResult:
    """Write the losers of all sources, in one process, a partition after the other."""
    task = task._replace(partitions=task.partitions or partitions_of(rows_of(task.indexes)))
    with TemporaryDirectory(prefix=".stages.", dir=folder) as scratch:
        return merge_shard(_leaving(in_folder(Path(scratch)), task, ()), folder)


def _leaving(run: RunStage, task: DedupTask, filters: Sequence[str]) -> MergeTask:
    """Find the losers, and read their rows again file by file where there are any."""
    losers = losers_of(run, filters, task.indexes, task.sources, task.dedup.by, task.near, task.partitions)
    if not losers:
        return MergeTask(())
    parts = parts_of(task.conversations, LEAVING_ROWS)
    index_of = dict(zip(task.conversations, task.indexes, strict=True))
    tasks = [LeavingTask(part, tuple(index_of[one.path] for one in part), losers, task.fingerprint) for part in parts]
    step = Step("leaving", LEAVING_VERSION, {"partitions": task.partitions}, (task.fingerprint,))
    return MergeTask(run(step, tasks, leaving_shard).file(DUPLICATES))


def leaving_shard(task: LeavingTask, folder: Path) -> ShardResult:
    """Write the losers of some checked rows."""
    with TableWriter(folder / DUPLICATES, schema(), _to_table) as out:
        for part, index in zip(task.parts, task.indexes, strict=True):
            for duplicate in _duplicates(part, index, task):
                out.write(duplicate)
    return ShardResult()


def _duplicates(part: Part, index: str, task: LeavingTask) -> Iterator[Duplicate]:
    numbers = [batch.column("row").to_pylist() for batch in part_batches(part._replace(path=index), ["row"])]
    if not numbers:
        return
    losers = read_losers(task.losers, numbers[0][0], numbers[-1][-1])
    if losers.keys().isdisjoint(chain.from_iterable(numbers)):
        return
    for batch in part_batches(part, None):
        places = [place for place, row in enumerate(batch.column("row").to_pylist()) if row in losers]
        if places:
            for conversation in readmit(batch.take(places)):
                yield _duplicate(conversation, losers[conversation.meta["row"]], task.fingerprint)


def _duplicate(conversation: Any, losing: Losing, fingerprint: str) -> Duplicate:
    says = "says the same as" if losing.similarity is None else f"is {losing.similarity:.2f} similar to"
    fault = Rejected(losing.code, f"{says} row {losing.winner_row} ({losing.winner_file}:{losing.winner_line})")
    left = from_conversation(conversation, fault, stage="dedup", config=fingerprint, class_="duplicate")
    return Duplicate(left, losing.winner_id, losing.winner_row, losing.similarity)


def merge_shard(task: MergeTask, folder: Path) -> ShardResult:
    """Write the losers of all sources as one file, and count them."""
    by_source: dict[str, Counter[str]] = {}
    out = RegroupedWriter(folder / DUPLICATES, schema())
    for path in task.duplicates:
        for batch in batches(Path(path)):
            out.write(batch)
            for source, code in zip(*(batch.column(name).to_pylist() for name in ("source", "code")), strict=True):
                by_source.setdefault(source, Counter()).update(("rows/duplicate", f"codes/{code}"))
    out.close()
    together: Counter[str] = Counter()
    for counts in by_source.values():
        together.update(counts)
    return ShardResult(dict(together), {"by_source": by_source})


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
