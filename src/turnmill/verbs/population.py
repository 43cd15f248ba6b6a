"""The records of a source before any is decoded: how long each is, which repeat another, and any of them again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import xxhash
from numpy.typing import NDArray

from turnmill.files.read import picked, record_of, records, undecoded
from turnmill.files.record import Piece, Record, Shard
from turnmill.files.storage import open_binary
from turnmill.options import Read, Source
from turnmill.verbs.check import RecordCheck

if TYPE_CHECKING:
    from turnmill.config import Config
    from turnmill.verbs.read import OpenSource

SPEAKERS = ("role", "from")
"""Names of the field that says who speaks."""
LEARNT_ROWS = 50
"""Good rows by which it is told which columns say nothing."""
LEARNT_TIMES = 3
"""How often a column must have been there for it."""

_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Seen(NamedTuple):
    """A record as it lies there."""

    offset: int
    """Bytes before it in its file, where it can be read from there; else -1."""
    raw: bytes


@dataclass(frozen=True, slots=True)
class Population:
    """One source's records that say something else than the earlier ones, in an order in which neighbours are alike.

    The first speaker goes first, then the size: a conversation that another speaker begins is often another thing.
    """

    opened: OpenSource
    rows: int
    """All records of the source."""
    numbers: NDArray[np.int64]
    """(distinct,) places among the source's rows, in that order."""
    sizes: NDArray[np.int64]
    """(distinct,) bytes of each."""
    kinds: NDArray[np.int64]
    """(distinct,) a number of each one's first speaker."""
    offsets: NDArray[np.int64]
    """(rows,) where each begins in its file; -1 where the file is read from its beginning."""

    def records(self, places: Sequence[int], read: Read) -> Iterator[tuple[int, Record]]:
        """(place in the order, record) of the records at some places of the order, as they lie in the files."""
        of_number = {int(self.numbers[place]): place for place in places}
        rising = sorted(of_number)
        shards = self.opened.plan.shards
        first = shards[0].first_row if shards else 0
        for shard in shards:
            begin = shard.first_row - first
            own = [number - begin for number in rising if begin <= number < begin + shard.rows]
            for record in self._picked(shard, own, begin, read) if own else ():
                yield of_number[record.row - first], record

    def _picked(self, shard: Shard, places: Sequence[int], begin: int, read: Read) -> Iterator[Record]:
        offsets = self.offsets[begin : begin + shard.rows]
        if (offsets[list(places)] < 0).any():
            yield from picked(shard, read, places)
            return
        ends = np.append(offsets[1:], shard.end)
        with open_binary(shard.path) as file:
            for place in places:
                file.seek(offsets[place])
                line = file.read(ends[place] - offsets[place])
                yield record_of(shard, shard.first_row + place, Piece(0, 0, line.strip()))


def population(opened: OpenSource, config: Config, seen: set[bytes]) -> Population:
    """The source's records, but for those that say what an earlier one says.

    Args:
        opened: the source.
        config: of the run.
        seen: hashes of what was said before; takes those of this source.
    """
    own = config.of(opened.source)
    is_deduplicated = "exact" in config.dedup.by
    speakers = _Speakers(opened.source)
    kept: list[tuple[int, int, int]] = []
    offsets: list[int] = []
    key_of: dict[str, _Key] = {}
    for shard in opened.plan.shards:
        if is_deduplicated and shard.name not in key_of:
            key_of[shard.name] = _Key(_silent_columns(shard, opened, config))
        for offset, raw in _records(shard, own.read):
            number = len(offsets)
            offsets.append(offset)
            if is_deduplicated:
                key = key_of[shard.name](raw)
                if key in seen:
                    continue
                seen.add(key)
            kept.append((number, len(raw), speakers.first(raw)))
    found = np.array(kept, dtype=np.int64).reshape(-1, 3)
    found = found[np.lexsort((found[:, 1], found[:, 2]))]
    numbers, sizes, kinds = found.T
    return Population(opened, len(offsets), numbers, sizes, kinds, np.array(offsets, dtype=np.int64))


def _records(shard: Shard, read: Read) -> Iterator[_Seen]:
    if shard.makes_rows:
        yield from (_Seen(-1, record.raw) for record in islice(records(shard, read), shard.rows))
        return
    is_found_again = shard.layout == "lines" and shard.compression == "none"
    for piece in undecoded(shard, read):
        yield _Seen(piece.offset if is_found_again and piece.fault is None else -1, piece.raw)


class _Speakers:
    """Numbers of the speakers that records begin with, told from their bytes."""

    def __init__(self, source: Source) -> None:
        names = "|".join(re.escape(name) for name in (*SPEAKERS, *source.tags.values()))
        self._first = re.compile(rf'"(?:{names})"\s*:\s*"([^"]{{1,40}})"'.encode())
        self._numbers: dict[bytes, int] = {b"": 0}

    def first(self, raw: bytes) -> int:
        found = self._first.search(raw)
        name = found[1].lower() if found else b""
        return self._numbers.setdefault(name, len(self._numbers))


class _Key:
    """A hash of what a record says: of its columns but for those that say nothing."""

    def __init__(self, silent: frozenset[str]) -> None:
        self._silent = silent

    def __call__(self, raw: bytes) -> bytes:
        if not self._silent:
            return xxhash.xxh3_128_digest(raw)
        try:
            columns = _RAW.decode(raw)
        except msgspec.MsgspecError:
            return xxhash.xxh3_128_digest(raw)
        hashed = xxhash.xxh3_128()
        for name, value in columns.items():
            if name not in self._silent:
                hashed.update(f"{name}:{len(value)}:".encode("utf-8", "surrogatepass"))
                hashed.update(value)
        return hashed.digest()


def _silent_columns(shard: Shard, opened: OpenSource, config: Config) -> frozenset[str]:
    """The columns without which the first good rows say the same: ids, dates, whence they are."""
    own = config.of(opened.source)
    checks = RecordCheck(
        opened.source, opened.dialects[shard.name], own.read, own.check, own.loss.fractional, Counter()
    )
    times: Counter[str] = Counter()
    telling: set[str] = set()
    for record in islice(records(shard, own.read), LEARNT_ROWS):
        said = checks.outcome(record).checked
        if record.value is None or said is None:
            continue
        for name in [name for name, value in record.value.items() if value and name not in telling]:
            rest = {key: value for key, value in record.value.items() if key != name}
            without = checks.outcome(msgspec.structs.replace(record, value=rest)).checked
            times[name] += 1
            if without is None or without.id != said.id:
                telling.add(name)
    return frozenset(name for name, count in times.items() if count >= LEARNT_TIMES and name not in telling)
