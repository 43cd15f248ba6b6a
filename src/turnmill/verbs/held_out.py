"""split's stages: the groups of the rows that stay, then which of a range of group keys are held out.

A group is held out by its key, so all its rows lie in one partition, and the partitions follow one another in the order
of the keys. A partition holds 24 bytes a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.dedup import Near
from turnmill.files.arrays import SIGNED, UNSIGNED, ArrayWriter, open_array, wanted_of
from turnmill.files.tables import batches
from turnmill.options import Split
from turnmill.split import Amount, HeldOut, Pool, hold_out, joined_groups, pooled, require_enough
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.near import NearFiles, read_known
from turnmill.verbs.partitions import Part, RunStage, Stage, gathered, part_batches, parts_of, stretches

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

VERSION = 1
NAMED_GROUPS = 10
"""So many of the groups that are too large are named."""
LOST = "lost.bin"
JOINED, JOINED_TO = "joined.bin", "joined-to.bin"
GROUP_KEYS, GROUP_ROWS, STAYING = "group-keys.bin", "group-rows.bin", "staying.bin"
HELD_OUT = "held-out.bin"
MEMBER = [("row", "<i8"), ("source", "<i8")]
"""A row of a group, and the number of its source."""


class SplitTask(NamedTuple):
    """All sources at once: a prompt group may span them."""

    indexes: tuple[str, ...]
    duplicates: str
    sources: tuple[str, ...]
    split: Split
    own: dict[str, Split]
    """Of the sources that say for themselves how much is held out."""
    near: NearFiles | None = None
    """Where `split.near` asks for near-duplicates."""
    left: tuple[str, ...] = ()
    """Further files of rows that left behind the filters."""
    partitions: int = 0
    """Ranges of keys that are looked at on their own; 0: as many as there are rows for. No byte hangs on it."""

    @property
    def own_numbers(self) -> dict[int, Split]:
        """`own` by the number of the source."""
        return {self.sources.index(name): split for name, split in self.own.items()}


class LostTask(NamedTuple):
    """Files of rows that left behind the filters."""

    left: tuple[str, ...]


class JoinsTask(NamedTuple):
    """All groups that near-duplicates stand in."""

    near: NearFiles
    indexes: tuple[str, ...]


class GroupsTask(NamedTuple):
    """Some rows of the index."""

    parts: tuple[Part, ...]
    lost: str
    joins: str | None
    """Folder of the joined groups."""
    sources: tuple[str, ...]


class HeldOutTask(NamedTuple):
    """All groups whose keys lie in one of several equal ranges."""

    groups: tuple[str, ...]
    split: Split
    own: dict[int, Split]
    pools: dict[int, Pool]
    partition: int
    partitions: int


class Oversized(NamedTuple):
    """A group that trains because it is too large."""

    size: int
    key: int
    row: int
    """Its first."""


class Found(NamedTuple):
    """What the stages say, for the last of them."""

    groups: tuple[str, ...]
    """Folders with the rows that stay."""
    held_out: tuple[str, ...]
    """Files of those that are held out."""
    joined: int | None
    """Groups that near-duplicates made part of others."""
    rows: dict[int, int]
    """Source, or `TOGETHER` → its rows."""
    amounts: dict[int, Amount]
    oversized: int
    named: tuple[Oversized, ...]
    """The largest of them."""


def sides_of(run: RunStage, task: SplitTask, inputs: Sequence[str]) -> Found:
    """Which rows stay, and which of them are held out.

    Args:
        run: what runs a stage.
        task: all of it.
        inputs: fingerprints of what it reads.
    """
    lost = run(Step("lost", VERSION, {}, tuple(inputs)), [LostTask((task.duplicates, *task.left))], lost_shard)
    joins = None
    if task.near is not None:
        joins = run(Step("joins", VERSION, {}, tuple(inputs)), [JoinsTask(task.near, task.indexes)], joins_shard)
    grouped = Step("groups", VERSION, {"near": task.near is not None, "sources": list(task.sources)}, tuple(inputs))
    joined = None if joins is None else joins.folders[0]
    tasks = [GroupsTask(parts, lost.file(LOST)[0], joined, task.sources) for parts in parts_of(task.indexes)]
    groups = run(grouped, tasks, groups_shard)
    rows = _rows(groups, task)
    held = _held_out(run, grouped.fingerprint, groups.folders, task, rows)
    return Found(
        groups.folders,
        held.file(HELD_OUT),
        None if joins is None else joins.results[0].counters["groups-joined"],
        rows,
        _amounts(held),
        sum(result.counters["oversized"] for result in held.results),
        _largest(Oversized(*one) for result in held.results for one in result.extra["named"]),
    )


def require_asked(task: SplitTask, found: Found) -> None:
    """Refuse a split that gave too little: as `require_enough`."""
    require_enough(found.rows, found.amounts, task.split, task.own_numbers, task.sources)


def _rows(groups: Stage, task: SplitTask) -> dict[int, int]:
    """Source that is held out on its own, or `TOGETHER` → the rows of it that stay."""
    import numpy as np

    of_source = np.array([result.extra["rows"] for result in groups.results], dtype=np.int64).sum(axis=0)
    drawn_from = pooled(np.arange(len(task.sources)), task.split, task.own_numbers)
    counted: Counter[int] = Counter()
    for source, rows in zip(drawn_from.tolist(), of_source.tolist(), strict=True):
        counted[source] += rows
    return {source: rows for source, rows in counted.items() if rows}


def _held_out(run: RunStage, made_by: str, groups: tuple[str, ...], task: SplitTask, rows: Mapping[int, int]) -> Stage:
    """The held-out rows by partition; how far `rows` reaches is known once all partitions are measured."""
    import dataclasses

    import msgspec

    own, count = task.own_numbers, task.partitions
    pools = [{source: Pool(there) for source, there in rows.items()}] * count
    asked = {"split": dataclasses.asdict(task.split), "own": {str(n): dataclasses.asdict(s) for n, s in own.items()}}
    params = {**msgspec.to_builtins(asked), "partitions": count}
    if any(split.rows for split in (task.split, *own.values())):
        step = Step("group-sizes", VERSION, params, (made_by,))
        tasks = [HeldOutTask(groups, task.split, own, pools[n], n, count) for n in range(count)]
        pools = _offset(pools[0], run(step, tasks, sizes_shard))
    tasks = [HeldOutTask(groups, task.split, own, pools[n], n, count) for n in range(count)]
    return run(Step("held-out", VERSION, params, (made_by,)), tasks, held_out_shard)


def _offset(pools: Mapping[int, Pool], sizes: Stage) -> list[dict[int, Pool]]:
    """The pools as each partition sees them: with what stands in those before it."""
    measured = [{source: in_groups for source, in_groups, _ in result.extra["amounts"]} for result in sizes.results]
    before = {source: list(accumulate((found.get(source, 0) for found in measured), initial=0)) for source in pools}
    return [
        {source: pool._replace(before=before[source][number]) for source, pool in pools.items()}
        for number in range(len(measured))
    ]


def _amounts(held: Stage) -> dict[int, Amount]:
    amounts: dict[int, Amount] = {}
    for source, in_groups, held_out in (one for result in held.results for one in result.extra["amounts"]):
        known = amounts.get(source, Amount(0, 0))
        amounts[source] = Amount(known.in_groups + in_groups, known.held_out + held_out)
    return amounts


def _largest(groups: Iterator[Oversized]) -> tuple[Oversized, ...]:
    return tuple(sorted(groups, key=lambda group: (-group.size, group.key))[:NAMED_GROUPS])


def lost_shard(task: LostTask, folder: Path) -> ShardResult:
    """Write the numbers of the rows that left, in order; 8 bytes a row that left are held."""
    import numpy as np

    found = [np.asarray(batch.column("row")) for path in task.left for batch in batches(Path(path), ["row"])]
    with ArrayWriter(folder / LOST, UNSIGNED) as out:
        out.write(np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found])))
    return ShardResult({"lost/rows": sum(map(len, found))})


def joins_shard(task: JoinsTask, folder: Path) -> ShardResult:
    """Write the groups that near-duplicates stand in, and the group that each becomes part of."""
    import numpy as np

    known = read_known(task.near)
    wanted = np.fromiter(known.texts, np.int64, len(known.texts))
    group_of: dict[int, int] = {}
    for path in task.indexes:
        for batch in batches(Path(path), ["row", "group"]):
            rows, groups = (np.asarray(batch.column(name)) for name in ("row", "group"))
            is_wanted = np.isin(rows, wanted)
            group_of.update(zip(rows[is_wanted].tolist(), groups[is_wanted].tolist(), strict=True))
    joins = joined_groups(_links(known, group_of))
    old = sorted(joins)
    for name, keys in ((JOINED, old), (JOINED_TO, [joins[key] for key in old])):
        with ArrayWriter(folder / name, UNSIGNED) as out:
            out.write(np.array(keys, dtype=np.uint64))
    return ShardResult({"groups-joined": sum(key != joined for key, joined in joins.items())})


def _links(known: Near, group_of: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Pairs of groups that near-duplicates stand in; those that leave as duplicates link, too."""
    first: dict[int, int] = {}
    for row, text in known.texts.items():
        yield group_of[first.setdefault(text, row)], group_of[row]
    for pair in known.pairs:
        yield group_of[pair.first], group_of[pair.second]


def groups_shard(task: GroupsTask, folder: Path) -> ShardResult:
    """Write the rows that stay, in order and by the group that they are part of."""
    import numpy as np

    number_of = {name: number for number, name in enumerate(task.sources)}
    lost = open_array(Path(task.lost), UNSIGNED)
    found = [_members(batch, lost, number_of) for part in task.parts for batch in _indexed(part)]
    groups = np.concatenate([np.zeros(0, dtype=np.uint64), *(keys for keys, _ in found)])
    members = np.concatenate([np.zeros(0, dtype=MEMBER), *(rows for _, rows in found)])
    if task.joins is not None:
        groups = _joined(groups, Path(task.joins))
    order = np.argsort(groups, kind="stable")
    with ExitStack() as stack:
        for name, kind, numbers in (
            (GROUP_KEYS, UNSIGNED, groups[order]),
            (GROUP_ROWS, MEMBER, members[order]),
            (STAYING, SIGNED, members["row"]),
        ):
            stack.enter_context(ArrayWriter(folder / name, kind)).write(numbers)
    rows = np.bincount(members["source"], minlength=len(task.sources)).tolist()
    return ShardResult({"groups/rows": len(members)}, {"rows": rows})


def _indexed(part: Part) -> Iterator[pa.RecordBatch]:
    return part_batches(part, ["row", "source", "group", "kept"])


def _members(
    batch: pa.RecordBatch, lost: NDArray[np.uint64], number_of: Mapping[str, int]
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """Groups and members of a batch's rows that no step let go."""
    import numpy as np

    kept = batch.filter(batch.column("kept"))
    rows = np.asarray(kept.column("row"))
    members = np.zeros(len(rows), dtype=MEMBER)
    members["row"] = rows
    members["source"] = [number_of[name] for name in kept.column("source").to_pylist()]
    left = lost[wanted_of(lost, int(rows.min()), int(rows.max()) + 1)] if len(rows) else lost[:0]
    stays = ~np.isin(rows, left.astype(np.int64))
    return np.asarray(kept.column("group"))[stays], members[stays]


def _joined(groups: NDArray[np.uint64], joins: Path) -> NDArray[np.uint64]:
    """The groups with each joined one as that which it is part of."""
    import numpy as np

    old, new = (open_array(joins / name, UNSIGNED) for name in (JOINED, JOINED_TO))
    if not len(old):
        return groups
    at = np.minimum(np.searchsorted(old, groups), len(old) - 1)
    return np.where(old[at] == groups, new[at], groups)


def sizes_shard(task: HeldOutTask, folder: Path) -> ShardResult:
    """Tell how many rows of each source are in groups of the range that are small enough to be held out."""
    _, _, found = _looked_at(task)
    return ShardResult({}, {"amounts": _listed(found)})


def held_out_shard(task: HeldOutTask, folder: Path) -> ShardResult:
    """Write the rows of a range of groups that are held out, in order."""
    import numpy as np

    keys, members, found = _looked_at(task)
    with ArrayWriter(folder / HELD_OUT, UNSIGNED) as out:
        out.write(np.sort(members["row"][found.held_out]))
    largest = _largest(Oversized(size, key, -1) for key, size in found.oversized.items())
    named = [one._replace(row=int(members["row"][np.argmax(keys == np.uint64(one.key))])) for one in largest]
    counts = {"split/held-out": int(found.held_out.sum()), "oversized": len(found.oversized)}
    return ShardResult(counts, {"amounts": _listed(found), "named": [list(one) for one in named]})


def _looked_at(task: HeldOutTask) -> tuple[NDArray[np.uint64], NDArray[Any], HeldOut]:
    keys_files, rows_files = ([str(Path(folder, name)) for folder in task.groups] for name in (GROUP_KEYS, GROUP_ROWS))
    where = stretches(keys_files, task.partition, task.partitions)
    keys, members = gathered(keys_files, UNSIGNED, where), gathered(rows_files, MEMBER, where)
    drawn_from = pooled(members["source"], task.split, task.own)
    return keys, members, hold_out(keys, drawn_from, task.split, task.own, task.pools)


def _listed(found: HeldOut) -> list[list[int]]:
    return [[source, *amount] for source, amount in sorted(found.amounts.items())]


def sides(found: Found) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """The rows that stay, in order, with whether each is held out; as many at a time as one task of the map had."""
    import numpy as np

    for folder in found.groups:
        rows = np.array(open_array(Path(folder, STAYING), SIGNED))
        held = [np.zeros(0, dtype=np.uint64)]
        for path in found.held_out if len(rows) else ():
            numbers = open_array(Path(path), UNSIGNED)
            held.append(np.array(numbers[wanted_of(numbers, int(rows.min()), int(rows.max()) + 1)]))
        yield rows, np.isin(rows, np.concatenate(held).astype(np.int64))
