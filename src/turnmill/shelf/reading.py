"""A data file read from any place on: the rows behind it, and the row on a line with its neighbours."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from turnmill.errors import StaleError, UsageError, quote
from turnmill.files.read import record_of, records_from, undecoded
from turnmill.files.record import Record, Shard
from turnmill.options import Check, Read, Source
from turnmill.shelf.content import MAX_LINE_BYTES, in_place, refuse_compressed
from turnmill.shelf.manifest import Manifest

if TYPE_CHECKING:
    from turnmill.verbs.check import RecordCheck

BLOCK_BYTES = 1 << 20
"""So much is read at a time where line ends are counted."""
BLANK = b" \t\r\n"


class Place(NamedTuple):
    """Where a row begins."""

    start: int = 0
    """Bytes before it in a file of lines; rows before it in any other."""
    line: int = 1
    """Its line, where the file has lines."""


class PlacedRow(NamedTuple):
    """A row, and where it begins."""

    place: Place
    record: Record


@dataclass(frozen=True, slots=True)
class Neighbours:
    """A row, and the lines of the ones beside it."""

    record: Record
    previous: int | None
    next: int | None


class DataChanged(UsageError):
    """The data file was written to while it was read."""


class NoSuchRow(UsageError):
    """No row stands on a line."""


class OpenData:
    """The data file of a dataset, open; nobody has counted its rows.

    Args:
        path: of the file.
        manifest: of the dataset.

    Attributes:
        dialect: of its rows.

    Raises:
        UsageError: it cannot be read, or the dialect of its rows cannot be told.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        from turnmill.verbs.read import open_uncounted

        self._path = path
        self._file = manifest.file
        self._read = Read(max_record_bytes=MAX_LINE_BYTES)
        self._source = Source(
            name=manifest.name,
            data=(str(path),),
            dialect=manifest.dialect or "auto",
            columns=dict(manifest.columns),
            roles=dict(manifest.roles),
        )
        name = PurePosixPath(manifest.file).name
        opened = open_uncounted(self._source, str(path), name, self._read)
        self._shards: Sequence[Shard] = opened.plan.shards
        self.dialect = opened.dialects.get(name, "openai")

    @property
    def has_lines(self) -> bool:
        """Whether each row is a line, which can be found without what is before it."""
        return bool(self._shards) and self._shards[0].layout == "lines" and not self._shards[0].session

    def check(self, repairs: Sequence[str] = (), dialect: str | None = None) -> RecordCheck:
        """What checks its rows as `prepare` does: mended before, or read as another dialect's, where that is asked."""
        from turnmill.verbs.check import RecordCheck

        source = dataclasses.replace(self._source, repairs=tuple(repairs))
        return RecordCheck(source, dialect or self.dialect, self._read, Check(), False, Counter())

    def rows(self, place: Place = Place()) -> Iterator[PlacedRow]:  # noqa: B008  # a place never changes
        """The rows from a place on, in order; none where the file ends before it."""
        if self.has_lines:
            yield from self._lines(place)
            return
        for shard in self._shards:
            first = max(place.start - shard.first_row, 0)
            if first < shard.rows:
                for row, record in enumerate(records_from(shard, self._read, first), shard.first_row + first):
                    yield PlacedRow(Place(row, record.source_line), record)

    def _lines(self, place: Place) -> Iterator[PlacedRow]:
        whole = self._shards[0]
        start = max(place.start, whole.start)
        if start >= whole.end:
            return
        shard = msgspec.structs.replace(whole, start=start, first_line=place.line)
        for piece in undecoded(shard, self._read):
            yield PlacedRow(Place(piece.offset, piece.line), record_of(shard, 0, piece))

    def at(self, line: int) -> Neighbours:
        """The row on a line; of a file that has none, the one with that number, from 1.

        Raises:
            NoSuchRow: there is none.
        """
        found = self._at_line(line) if self.has_lines else self._at_row(line)
        if found is None:
            raise NoSuchRow(f"no row stands on line {line:,} of {quote(self._file)}")
        return found

    def _at_line(self, line: int) -> Neighbours | None:
        with self._path.open("rb") as file:
            start = _start_of(file, line)
            rows = self.rows(Place(start, line))
            row, after = next(rows, None), next(rows, None)
            if row is None or row.place.line != line:
                return None
            return Neighbours(row.record, _line_before(file, Place(start, line)), after and after.place.line)

    def _at_row(self, line: int) -> Neighbours | None:
        is_parquet = bool(self._shards) and self._shards[0].layout == "parquet"
        before: PlacedRow | None = None
        row: PlacedRow | None = None
        for after in chain(self.rows(Place(max(line - 2, 0)) if is_parquet else Place()), [None]):
            if row is not None and row.place.line == line:
                return Neighbours(row.record, before and before.place.line, after and after.place.line)
            before, row = row, after
        return None


@contextmanager
def opened(folder: Path, manifest: Manifest) -> Iterator[OpenData]:
    """The data file of a dataset; an error does not say where it lies.

    Raises:
        UsageError: as `OpenData`.
        DataChanged: it was written to while it was read.
    """
    with in_place(folder, manifest) as path:
        try:
            refuse_compressed(path, manifest)
            yield OpenData(path, manifest)
        except StaleError:
            raise DataChanged(f"{quote(manifest.file)} was written to while it was read") from None
        except UsageError as error:
            error.message = error.message.replace(str(path), quote(manifest.file))
            raise


def _start_of(file: BinaryIO, line: int) -> int:
    """Where a line begins; the end of the file where it has fewer."""
    missing, start = line - 1, 0
    while missing and (block := file.read(BLOCK_BYTES)):
        ends = block.count(b"\n")
        if ends < missing:
            missing -= ends
            start += len(block)
            continue
        at = -1
        for _ in range(missing):
            at = block.index(b"\n", at + 1)
        return start + at + 1
    return start


def _line_before(file: BinaryIO, place: Place) -> int | None:
    """The last line before a place that holds more than white space."""
    start, line = place
    while start:
        begin = max(start - BLOCK_BYTES, 0)
        file.seek(begin)
        block = file.read(start - begin)
        kept = block.rstrip(BLANK)
        line -= block.count(b"\n", len(kept))
        if kept:
            return line
        start = begin
    return None
