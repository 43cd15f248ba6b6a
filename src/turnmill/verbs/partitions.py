"""Global steps by partition: rows are mapped to keys part by part, and each range of keys is looked at on its own.

A map task writes its keys sorted, so that a range of them is one stretch of its file: how many ranges there are is
chosen later, and no file of the map hangs on it. Nor does any byte of what a global step publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.files.arrays import UNSIGNED, open_array, wanted_of
from turnmill.files.tables import GroupRange, batches, group_ranges
from turnmill.steps.shards import RunShard, ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.built import Builder

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

PARTITION_ROWS = 1 << 20
"""Rows of which one task holds the keys: of a map, and on average of a partition."""


class Part(NamedTuple):
    """Some row groups of a file."""

    path: str
    groups: GroupRange


class Stage(NamedTuple):
    """What the tasks of a stage made."""

    folders: tuple[str, ...]
    results: tuple[ShardResult, ...]

    def file(self, name: str) -> tuple[str, ...]:
        """That file of every task, in order."""
        return tuple(str(Path(folder, name)) for folder in self.folders)


RunStage = Callable[[Step, Sequence[Any], RunShard], Stage]
"""(recipe, tasks, what runs one) → what they made."""


def in_steps(builder: Builder) -> RunStage:
    """Stages as steps of a cache, which any executor runs and the next run takes up."""

    def run(step: Step, tasks: Sequence[Any], run_shard: RunShard) -> Stage:
        built = builder.build(step, tasks, run_shard)
        return Stage(tuple(map(str, built.file(""))), built.results)

    return run


def in_folder(folder: Path) -> RunStage:
    """Stages in this process, below a folder that is thrown away: where one task is enough."""

    def run(step: Step, tasks: Sequence[Any], run_shard: RunShard) -> Stage:
        folders = [folder / step.folder_name / str(number) for number in range(len(tasks))]
        for place in folders:
            place.mkdir(parents=True)
        results = [run_shard(task, place) for task, place in zip(tasks, folders, strict=True)]
        return Stage(tuple(map(str, folders)), tuple(results))

    return run


def partitions_of(rows: int) -> int:
    """How many partitions so many rows need."""
    return max(1, -(-rows // PARTITION_ROWS))


def rows_of(paths: Sequence[str]) -> int:
    """Rows of some Parquet files."""
    return sum(groups.rows for path in paths for groups in group_ranges(Path(path), PARTITION_ROWS))


def parts_of(paths: Sequence[str], most_rows: int = PARTITION_ROWS) -> list[tuple[Part, ...]]:
    """The row groups of files in order, in tasks of at most `most_rows` rows; at least one task."""
    tasks: list[list[Part]] = [[]]
    rows = 0
    for path in paths:
        for groups in group_ranges(Path(path), most_rows):
            if rows and rows + groups.rows > most_rows:
                tasks.append([])
                rows = 0
            tasks[-1].append(Part(path, groups))
            rows += groups.rows
    return [tuple(task) for task in tasks]


def part_batches(part: Part, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """The batches of a part."""
    return batches(Path(part.path), columns, range(part.groups.first, part.groups.end))


def key_range(partition: int, partitions: int) -> tuple[int, int]:
    """First key of a partition, and the end of it."""
    first, end = (2**64 * number // partitions for number in (partition, partition + 1))
    return first, end


def stretches(keys: Sequence[str], partition: int, partitions: int) -> list[slice]:
    """Where the keys of a partition stand in each of some sorted files."""
    first, end = key_range(partition, partitions)
    return [wanted_of(open_array(Path(path), UNSIGNED), first, end) for path in keys]


def gathered(paths: Sequence[str], kind: Any, where: Sequence[slice]) -> NDArray[Any]:
    """Those stretches of files of numbers or records, one after the other, in memory."""
    import numpy as np

    found = [np.array(open_array(Path(path), kind)[wanted]) for path, wanted in zip(paths, where, strict=True)]
    return np.concatenate([np.zeros(0, dtype=kind), *found])
