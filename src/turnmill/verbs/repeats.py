"""dedup's stages: the keys of all rows, then the repeats of a range of keys each, then what near-duplicates add.

A row may repeat another of any source, so rows are brought together by what they say: by id, and those that stay by
their first exchange. A partition holds the keys of its rows (8 bytes each) and the entries of those that share one (64
bytes each). Near-duplicates are known as pairs; what they take away is found by one task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.dedup import Entry, Place, near_duplicates
from turnmill.dedup.repeats import ENTRY, KEYS, Way, entry_of, halves, ids_of, repeated, repeats, weights_hash
from turnmill.files.arrays import SIGNED, UNSIGNED, ArrayWriter, open_array
from turnmill.files.tables import batches, write_columns
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.near import NearFiles, read_known
from turnmill.verbs.partitions import Part, RunStage, Stage, gathered, part_batches, parts_of, stretches

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

VERSION = 1
FILES = "files.json"
LOSERS, LOST_KEYS, LOST_ROWS = "losers.parquet", "lost-keys.bin", "lost-rows.bin"
WAYS: tuple[Way, ...] = ("exact", "first-exchange")
COLUMNS = ("row", "kept", "id", "weights", "exchange", "source", "source_file", "source_line")


class KeysTask(NamedTuple):
    """Some rows of the index."""

    parts: tuple[Part, ...]


class RepeatsTask(NamedTuple):
    """All rows whose keys lie in one of several equal ranges."""

    keys: tuple[str, ...]
    """Folders of keys, in the order of their rows."""
    way: Way
    before: tuple[str, ...]
    """Folders of those that left in a stricter way."""
    sources: tuple[str, ...]
    partition: int
    partitions: int


class NearTask(NamedTuple):
    """All rows that near-duplicates stand among."""

    keys: tuple[str, ...]
    before: tuple[str, ...]
    sources: tuple[str, ...]
    near: NearFiles


class Losing(NamedTuple):
    """A row that leaves, and the row that stays for it."""

    row: int
    code: str
    winner_id: str
    winner_row: int
    winner_file: str
    winner_line: int
    similarity: float | None


def losers_of(
    run: RunStage,
    filters: Sequence[str],
    indexes: Sequence[str],
    sources: tuple[str, ...],
    by: Sequence[str],
    near: NearFiles | None,
    partitions: int,
) -> tuple[str, ...]:
    """Files of the rows that leave, the rows in order in each.

    Args:
        run: what runs a stage.
        filters: fingerprints of what made the index.
        indexes: its files.
        sources: their names, in the order of the recipe.
        by: `dedup.by`.
        near: the near-duplicates, where they are asked for.
        partitions: how many ranges of keys are looked at on their own.
    """
    if not by:
        return ()
    keys_step = Step("keys", VERSION, {}, tuple(filters))
    keys = run(keys_step, [KeysTask(parts) for parts in parts_of(indexes)], keys_shard).folders
    made: list[Stage] = []
    inputs: tuple[str, ...] = (keys_step.fingerprint,)
    for way in WAYS:
        if way not in by:
            continue
        before = tuple(folder for stage in made for folder in stage.folders)
        params: dict[str, Json] = {"way": way, "partitions": partitions, "sources": list(sources)}
        step = Step("repeats", VERSION, params, inputs)
        numbers = range(partitions)
        made.append(run(step, [RepeatsTask(keys, way, before, sources, n, partitions) for n in numbers], repeats_shard))
        inputs = (*inputs, step.fingerprint)
    if near is not None:
        before = tuple(folder for stage in made for folder in stage.folders)
        step = Step("near-repeats", VERSION, {"sources": list(sources)}, (*inputs, near.fingerprint))
        made.append(run(step, [NearTask(keys, before, sources, near)], near_shard))
    return tuple(path for stage in made for path in stage.file(LOSERS))


def keys_shard(task: KeysTask, folder: Path) -> ShardResult:
    """Write what dedup needs to know of the rows that the filters keep, sorted by each key."""
    import numpy as np

    files: dict[tuple[str, str], int] = {}
    found = [_entries(batch, files) for part in task.parts for batch in part_batches(part, COLUMNS)]
    entries = np.concatenate([np.zeros(0, dtype=ENTRY), *found])
    for way in WAYS:
        keys = entries[KEYS[way][0]]
        order = _in_key_order(keys)
        _write(folder, {_keys(way): (UNSIGNED, keys[order]), _records(way): (ENTRY, entries[order])})
    (folder / FILES).write_bytes(msgspec.json.encode(list(files)))
    return ShardResult({"keys/rows": len(entries)})


def _in_key_order(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where the keys stand in order, without those that are none: they would all be one partition's."""
    import numpy as np

    order = np.argsort(keys, kind="stable")
    return order[np.count_nonzero(keys == 0) :]


def _keys(way: Way) -> str:
    return f"{way}-keys.bin"


def _records(way: Way) -> str:
    return f"{way}-entries.bin"


def _write(folder: Path, columns: Mapping[str, tuple[Any, NDArray[Any]]]) -> None:
    with ExitStack() as stack:
        for name, (kind, numbers) in columns.items():
            stack.enter_context(ArrayWriter(folder / name, kind)).write(numbers)


def _entries(batch: pa.RecordBatch, files: dict[tuple[str, str], int]) -> NDArray[Any]:
    """The entries of a batch's rows that stay; files are numbered as they come."""
    import numpy as np

    kept = batch.filter(batch.column("kept"))
    columns = {name: kept.column(name).to_pylist() for name in COLUMNS}
    entries = np.zeros(kept.num_rows, dtype=ENTRY)
    entries["id_high"], entries["id_low"] = halves(columns["id"])
    entries["exchange_high"], entries["exchange_low"] = halves(columns["exchange"])
    entries["weights"] = np.array([weights_hash(text) for text in columns["weights"]], dtype=np.uint64)
    places = zip(columns["source"], columns["source_file"], strict=True)
    entries["file"] = [files.setdefault(place, len(files)) for place in places]
    entries["line"], entries["row"] = columns["source_line"], columns["row"]
    return entries


class Places:
    """The files of all rows, numbered in the order of sources and names.

    Args:
        keys: folders of keys.
        sources: their names, in the order of the recipe.
    """

    def __init__(self, keys: Sequence[str], sources: Sequence[str]) -> None:
        order = {name: number for number, name in enumerate(sources)}
        decode = msgspec.json.Decoder(list[tuple[str, str]]).decode
        listed = [[(order[source], file) for source, file in decode(Path(key, FILES).read_bytes())] for key in keys]
        self._files = sorted({place for shard in listed for place in shard})
        number = {place: at for at, place in enumerate(self._files)}
        self._numbers = [[number[place] for place in shard] for shard in listed]

    def numbered(self, shard: int, entries: NDArray[Any]) -> NDArray[Any]:
        """A shard's entries, their files as all shards number them."""
        import numpy as np

        entries = np.array(entries)
        entries["file"] = np.array(self._numbers[shard], dtype=np.int64)[entries["file"]]
        return entries

    def of(self, entry: Any) -> Place:
        """Where an entry was read."""
        source, file = self._files[entry["file"]]
        return Place(source, file, int(entry["line"]))


def repeats_shard(task: RepeatsTask, folder: Path) -> ShardResult:
    """Write the rows of a range of keys that leave, and their first exchanges, for the partitions of those."""
    import numpy as np

    places = Places(task.keys, task.sources)
    entries = _sharing(task, places)
    found = repeats(entries, task.way)
    order = np.argsort(entries["row"][found.losers], kind="stable")
    losers, winners = entries[found.losers[order]], entries[found.winners[order]]
    _write_losers(folder / LOSERS, _losing(losers, winners, task.way, places))
    exchanges = _in_key_order(losers["exchange_high"])
    keys, rows = losers["exchange_high"][exchanges], losers["row"][exchanges]
    _write(folder, {LOST_KEYS: (UNSIGNED, keys), LOST_ROWS: (SIGNED, rows)})
    return ShardResult({"repeats/rows": len(losers)})


def _sharing(task: RepeatsTask, places: Places) -> NDArray[Any]:
    """The entries of the partition whose key another has, without those that left before."""
    import numpy as np

    keys = [str(Path(folder, _keys(task.way))) for folder in task.keys]
    where = stretches(keys, task.partition, task.partitions)
    is_shared = repeated(gathered(keys, UNSIGNED, where))
    found, at = [np.zeros(0, dtype=ENTRY)], 0
    for number, (key, wanted) in enumerate(zip(task.keys, where, strict=True)):
        length = wanted.stop - wanted.start
        entries = open_array(Path(key, _records(task.way)), ENTRY)[wanted]
        found.append(places.numbered(number, entries[is_shared[at : at + length]]))
        at += length
    shared = np.concatenate(found)
    return shared[~np.isin(shared["row"], _lost(task))]


def _lost(task: RepeatsTask) -> NDArray[np.int64]:
    """Rows of the partition that left in a stricter way: found by their first exchange."""
    keys, rows = ([str(Path(folder, name)) for folder in task.before] for name in (LOST_KEYS, LOST_ROWS))
    return gathered(rows, SIGNED, stretches(keys, task.partition, task.partitions))


def _losing(losers: NDArray[Any], winners: NDArray[Any], way: Way, places: Places) -> dict[str, Iterable[Any]]:
    """The columns of `Losing`."""
    import numpy as np

    codes = np.full(len(losers), "duplicate-first-exchange", dtype=object)
    if way == "exact":
        codes = np.where(losers["weights"] == winners["weights"], "duplicate", "duplicate-other-weights")
    files = (places.of(winner).file for winner in winners)
    similarities = [None] * len(losers)
    columns = (losers["row"], codes, ids_of(winners), winners["row"], files, winners["line"], similarities)
    return dict(zip(Losing._fields, columns, strict=True))


def _write_losers(path: Path, columns: Mapping[str, Iterable[Any]]) -> None:
    import pyarrow as pa

    numbers = dict.fromkeys(("row", "winner_row", "winner_line"), pa.int64())
    kinds = {**dict.fromkeys(Losing._fields, pa.string()), **numbers, "similarity": pa.float64()}
    write_columns(path, columns, pa.schema(kinds.items()))


def near_shard(task: NearTask, folder: Path) -> ShardResult:
    """Write the rows that leave as near-duplicates of one that stays."""
    near = read_known(task.near)
    places = Places(task.keys, task.sources)
    found = near_duplicates(_among(task, near.texts, places), near)
    losing = [
        Losing(
            loser.entry.row, loser.code, loser.winner.id, loser.winner.row, *loser.winner.place[1:], loser.similarity
        )
        for loser in found
    ]
    columns = list(zip(*sorted(losing), strict=True)) or [()] * len(Losing._fields)
    _write_losers(folder / LOSERS, dict(zip(Losing._fields, columns, strict=True)))
    return ShardResult({"repeats/rows": len(losing)})


def _among(task: NearTask, texts: Mapping[int, int], places: Places) -> Iterator[Entry]:
    """The rows that have a near-duplicate and have not left."""
    import numpy as np

    wanted = np.fromiter(texts, np.int64, len(texts))
    for folder in task.before:
        for batch in batches(Path(folder, LOSERS), ["row"]):
            wanted = wanted[~np.isin(wanted, np.asarray(batch.column("row")))]
    for number, key in enumerate(task.keys):
        entries = open_array(Path(key, _records("exact")), ENTRY)
        for entry in places.numbered(number, entries[np.isin(entries["row"], wanted)]):
            yield entry_of(entry, places.of(entry))


def read_losers(paths: Sequence[str], first: int, last: int) -> dict[int, Losing]:
    """Row → how it leaves, of the rows from `first` to `last`."""
    import pyarrow.parquet as pq

    found: dict[int, Losing] = {}
    for path in paths:
        table = pq.read_table(path, filters=[("row", ">=", first), ("row", "<=", last)])
        for losing in map(Losing._make, zip(*(column.to_pylist() for column in table.columns), strict=True)):
            found[losing.row] = losing
    return found
