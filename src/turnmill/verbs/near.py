"""Near-duplicates among the rows that the filters leave: signatures a file each, then pairs a range of keys each.

What dedup and split ask for. Neither step holds more than a part of the rows: the sets of n-grams lie on the disk, and
are read again where two of them are compared.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.dedup import Near as Known
from turnmill.dedup.near import Comparing, NearPair, Sketcher, bands_of, said
from turnmill.dedup.repeats import repeated
from turnmill.files.arrays import SIGNED, UNSIGNED, ArrayWriter, array_length, open_array, wanted_of
from turnmill.files.canonical import stored_messages
from turnmill.files.tables import GroupRange, batches, group_ranges, write_columns
from turnmill.options import Near
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.built import Builder
from turnmill.verbs.partitions import key_range, partitions_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from turnmill.config import Config

SIGNATURES_VERSION = 1
PAIRS_VERSION = 1
TASK_ROWS = 50_000
"""Rows whose keys are held and sorted together."""
PART_ENTRIES = 1 << 21
"""Keys that one task of the pairs holds: about 150 MB."""
OPEN_SHARDS = 64
"""Shards whose sets are open at once: each takes three of the files that a process may have open."""
PAIRS = "pairs.parquet"
COLUMNS = {
    "sets": UNSIGNED, "ends": SIGNED, "rows": SIGNED, "digests": UNSIGNED, "keys": UNSIGNED, "owners": SIGNED,
}  # fmt: skip
"""File of a shard → its numbers: the sets one after the other and where each ends, a row number and a digest each; the
sorted keys of all rows, and the row in the shard that each is of."""


@dataclass(frozen=True, slots=True)
class SignatureTask:
    """Some row groups of a file of checked rows, and of its index."""

    conversations: str
    index: str
    groups: GroupRange
    near: Near


@dataclass(frozen=True, slots=True)
class PairTask:
    """All rows whose keys lie in one of several equal ranges."""

    shards: tuple[str, ...]
    """Folders of signatures, in the order of their rows."""
    threshold: float
    part: int
    parts: int


class NearFiles(NamedTuple):
    """Where the near-duplicates of a run stand."""

    fingerprint: str
    shards: tuple[str, ...]
    """Folders of signatures."""
    pairs: tuple[str, ...]


def is_wanted(config: Config) -> bool:
    """Whether any step asks for near-duplicates."""
    return "near" in config.dedup.by or config.split.near


def signatures_step(filters: Sequence[Step], options: Near) -> Step:
    """The recipe of the signatures."""
    params = {"threshold": options.threshold, "ngram": options.ngram}
    return Step("signatures", SIGNATURES_VERSION, params, tuple(step.fingerprint for step in filters))


def signature_tasks(conversations: Sequence[str], indexes: Sequence[str], options: Near) -> list[SignatureTask]:
    """The work of the signatures: files of checked rows, one to each index."""
    return [
        SignatureTask(path, index, groups, options)
        for path, index in zip(conversations, indexes, strict=True)
        for groups in group_ranges(Path(path), TASK_ROWS)
    ]


def sign_shard(task: SignatureTask, folder: Path) -> ShardResult:
    """Write the sets of n-grams and the keys of those rows that a filter keeps and that hold a word."""
    import numpy as np

    sketcher = Sketcher(task.near.threshold, task.near.ngram)
    held: list[NDArray[np.uint64]] = []
    end = 0
    with ExitStack() as stack:
        names = ("sets", "ends", "rows", "digests")
        out = {name: stack.enter_context(ArrayWriter(folder / _file(name), COLUMNS[name])) for name in names}
        for rows, texts in _texts(task):
            sketch = sketcher(texts)
            full = np.flatnonzero(np.diff(sketch.starts))
            out["sets"].write(sketch.sets)
            out["ends"].write(sketch.starts[full + 1] + end)
            out["rows"].write(rows[full])
            out["digests"].write(sketch.digests[full])
            held.append(sketch.keys[full])
            end += len(sketch.sets)
    _write_keys(folder, np.concatenate(held) if held else np.zeros((0, sketcher.bands.number), dtype=np.uint64))
    return ShardResult({"near/rows": array_length(folder / _file("rows"))})


def _file(name: str) -> str:
    return f"{name}.bin"


def _texts(task: SignatureTask) -> Iterator[tuple[NDArray[np.int64], list[str]]]:
    """Row numbers and texts of the rows that stay, batch by batch."""
    import numpy as np

    groups = range(task.groups.first, task.groups.end)
    indexed = batches(Path(task.index), ["row", "kept"], groups)
    for index, batch in zip(indexed, batches(Path(task.conversations), ["messages"], groups), strict=True):
        kept = index.column("kept").to_pylist()
        messages = zip(stored_messages(batch.column("messages")), kept, strict=True)
        texts = [said(row) for row, stays in messages if stays]
        yield np.asarray(index.column("row"))[np.asarray(kept, dtype=np.bool_)], texts


def _write_keys(folder: Path, keys: NDArray[np.uint64]) -> None:
    import numpy as np

    flat = keys.ravel()
    order = np.argsort(flat, kind="stable")
    for name, numbers in (("keys", flat[order]), ("owners", order // max(1, keys.shape[1]))):
        with ArrayWriter(folder / _file(name), COLUMNS[name]) as out:
            out.write(numbers)


def pair_tasks(shards: tuple[str, ...], options: Near, rows: int, parts: int = 0) -> list[PairTask]:
    """The work of the pairs: as many ranges of keys as so many rows need, unless it is said how many."""
    parts = parts or max(1, -(-rows * bands_of(options.threshold).number // PART_ENTRIES))
    return [PairTask(shards, options.threshold, part, parts) for part in range(parts)]


def pairs_step(signatures: Step, parts: int) -> Step:
    """The recipe of the pairs; in how many parts they are found changes which file holds a pair, and no pair."""
    return Step("pairs", PAIRS_VERSION, {"parts": parts}, (signatures.fingerprint,))


def pair_shard(task: PairTask, folder: Path) -> ShardResult:
    """Write the near-duplicates that share a key of one range."""
    import pyarrow as pa

    sets = StoredSets(task.shards)
    keys, numbers, digests = _entries(task, sets)
    comparing = Comparing(sets.set_of, task.threshold)
    found = comparing.pairs(keys, numbers, digests)
    numbered = [NearPair(sets.row_of(first), sets.row_of(second), similarity) for first, second, similarity in found]
    row = pa.int64()
    kinds = {"first": row, "second": row, "similarity": pa.float64()}
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])
    columns = zip(*numbered, strict=True) if numbered else ((), (), ())
    write_columns(folder / PAIRS, dict(zip(kinds, columns, strict=True)), schema)
    return ShardResult({"near/pairs-compared": comparing.compared, "near/pairs": len(found)})


def _entries(task: PairTask, sets: StoredSets) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """The keys of the range, the number of the row of each, and its digest."""
    import numpy as np

    first, end = (2**64 * number // task.parts for number in (task.part, task.part + 1))
    found: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for base, shard in zip(sets.bases, map(Path, task.shards), strict=False):
        keys = open_array(shard / _file("keys"), UNSIGNED)
        wanted = wanted_of(keys, first, end)
        owners = open_array(shard / _file("owners"), SIGNED)[wanted]
        found[0].append(np.array(keys[wanted]))
        found[1].append(owners + base)
        found[2].append(open_array(shard / _file("digests"), UNSIGNED)[owners])
    kinds = (np.uint64, np.int64, np.uint64)
    joined = [np.concatenate([np.zeros(0, kind), *part]) for kind, part in zip(kinds, found, strict=True)]
    return joined[0], joined[1], joined[2]


class _Shard(NamedTuple):
    """The arrays of one folder of signatures."""

    sets: NDArray[np.uint64]
    ends: NDArray[np.int64]
    rows: NDArray[np.int64]


class StoredSets:
    """The sets of n-grams of all rows, on the disk; rows are numbered through the shards.

    Args:
        shards: folders of signatures.

    Attributes:
        bases: number of each shard's first row, and how many there are.
    """

    def __init__(self, shards: Sequence[str]) -> None:
        self._folders = [Path(shard) for shard in shards]
        counts = [array_length(folder / _file("rows")) for folder in self._folders]
        self.bases = [0, *accumulate(counts)]
        self._open: OrderedDict[int, _Shard] = OrderedDict()

    def set_of(self, number: int) -> NDArray[np.uint64]:
        """The sorted set of a row."""
        shard, inner = self._place(number)
        return shard.sets[int(shard.ends[inner - 1]) if inner else 0 : int(shard.ends[inner])]

    def row_of(self, number: int) -> int:
        """The row's number over all sources."""
        shard, inner = self._place(number)
        return int(shard.rows[inner])

    def _place(self, number: int) -> tuple[_Shard, int]:
        """The shard of a row, and its number in there."""
        index = bisect_right(self.bases, number) - 1
        if index in self._open:
            self._open.move_to_end(index)
        else:
            names = _Shard._fields
            arrays = [open_array(self._folders[index] / _file(name), COLUMNS[name]) for name in names]
            self._open[index] = _Shard._make(arrays)
            if len(self._open) > OPEN_SHARDS:
                self._open.popitem(last=False)
        return self._open[index], number - self.bases[index]


def build_pairs(
    builder: Builder, filters: Sequence[Step], conversations: Sequence[str], indexes: Sequence[str], options: Near
) -> NearFiles:
    """The near-duplicates of a run; files of checked rows and their indexes stand in the order of the sources."""
    tasks = signature_tasks(conversations, indexes, options)
    step = signatures_step(filters, options)
    signed = builder.build(step, tasks, sign_shard, rows=[task.groups.rows for task in tasks])
    shards = tuple(map(str, signed.file("")))
    rows = sum(result.counters["near/rows"] for result in signed.results)
    ranges = pair_tasks(shards, options, rows, builder.partitions)
    paired = builder.build(pairs_step(step, len(ranges)), ranges, pair_shard)
    usual = pairs_step(step, len(pair_tasks(shards, options, rows)))  # no step after this hangs on a number asked for
    return NearFiles(usual.fingerprint, shards, tuple(map(str, paired.file(PAIRS))))


def read_known(files: NearFiles) -> Known:
    """What is known of near-duplicates, for dedup and split."""
    import numpy as np

    pairs: set[NearPair] = set()
    for path in files.pairs:
        for batch in batches(Path(path)):
            pairs.update(map(NearPair._make, zip(*(column.to_pylist() for column in batch.columns), strict=True)))
    paired = {row for pair in pairs for row in pair[:2]}
    lasting = np.fromiter(paired, np.int64, len(paired))
    texts: dict[int, int] = {}
    parts = partitions_of(sum(array_length(Path(shard) / _file("rows")) for shard in files.shards))
    for part in range(parts):
        rows, digests = _digests(files.shards, *key_range(part, parts))
        wanted = np.isin(rows, lasting) | repeated(digests)
        texts.update(zip(rows[wanted].tolist(), digests[wanted].tolist(), strict=True))
    return Known(sorted(pairs), texts)


def _digests(shards: Sequence[str], first: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Row numbers and digests of the rows whose digest lies in a range."""
    import numpy as np

    found: list[tuple[NDArray[Any], NDArray[Any]]] = [(np.zeros(0, SIGNED), np.zeros(0, UNSIGNED))]
    for shard in map(Path, shards):
        rows, digests = (open_array(shard / _file(name), COLUMNS[name]) for name in ("rows", "digests"))
        wanted = (digests >= np.uint64(first)) & (digests <= np.uint64(end - 1))
        found.append((rows[wanted], digests[wanted]))
    rows, digests = (np.concatenate(column) for column in zip(*found, strict=True))
    return rows, digests
