"""Reading a shard: its records one by one, good and bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from turnmill.errors import Rejected, StaleError
from turnmill.files.decode import decode
from turnmill.files.json_text import pieces
from turnmill.files.parquet import ParquetRow, parquet_rows
from turnmill.files.record import Piece, Record, Shard
from turnmill.files.sessions import gathered
from turnmill.files.storage import FileState, look_at, open_binary, sha256_of, state_of
from turnmill.options import Read


def records(shard: Shard, options: Read, counts: Counter[str] | None = None) -> Iterator[Record]:
    """The shard's records in order, as many as it says; never holds more than a batch of them.

    A bad record comes with its fault and does not end the shard, unless it is `fatal`.

    Args:
        shard: a stretch of a file, from `plan`.
        options: what makes a record too large.
        counts: takes `read/<what>` where given.

    Raises:
        StaleError: the file is not as it was when the shard was planned.
        UsageError: the file cannot be read.
    """
    before = FileState(shard.file_bytes, shard.file_version)
    before = _unchanged(shard, before)
    yield from islice(_found(shard, options, Counter() if counts is None else counts), shard.rows)
    _unchanged(shard, before)


def _found(shard: Shard, options: Read, counts: Counter[str]) -> Iterator[Record]:
    if shard.layout == "parquet":
        return _parquet_records(shard, options, counts)
    if shard.session:
        return _session_records(shard, options, counts)
    return _json_records(shard, options)


def picked(shard: Shard, options: Read, places: Sequence[int]) -> Iterator[Record]:
    """The shard's records at some places, which are decoded alone.

    Args:
        shard: a stretch of a file, from `plan`.
        options: what makes a record too large.
        places: 0-based, rising.

    Raises:
        StaleError: the file is not as it was when the shard was planned.
        UsageError: the file cannot be read.
    """
    _unchanged(shard, FileState(shard.file_bytes, shard.file_version))
    if shard.layout == "parquet":
        found = parquet_rows(shard, options.max_record_bytes, Counter(), places)
        yield from (_parquet_record(shard, place, row) for place, row in zip(places, found, strict=False))
        return
    wanted = set(places)
    if shard.session:
        yield from (record for place, record in enumerate(records(shard, options)) if place in wanted)
        return
    for place, piece in enumerate(undecoded(shard, options)):
        if place in wanted:
            yield record_of(shard, shard.first_row + place, piece)


def records_from(shard: Shard, options: Read, first: int) -> Iterator[Record]:
    """The shard's records from one on, counted from 0; those before it are not decoded.

    Args:
        shard: a stretch of a file, from `plan`.
        options: what makes a record too large.
        first: of the records.

    Raises:
        StaleError: the file is not as it was when the shard was planned.
        UsageError: the file cannot be read.
    """
    if shard.layout == "parquet":
        yield from picked(shard, options, range(first, shard.rows))
    elif shard.session:
        yield from islice(records(shard, options), first, None)
    else:
        for place, piece in enumerate(undecoded(shard, options)):
            if place >= first:
                yield record_of(shard, shard.first_row + place, piece)


def undecoded(shard: Shard, options: Read) -> Iterator[Piece]:
    """The records of a shard of JSON text, which is no session, as they lie there, as many as it says."""
    with open_binary(shard.path) as file:
        file.seek(shard.start)
        yield from islice(pieces(file, shard, options.max_record_bytes), shard.rows)


def _unchanged(shard: Shard, before: FileState) -> FileState:
    """The file's state now, when its bytes are those that were planned: a file that was only touched is read again.

    Raises:
        StaleError: it has other bytes.
    """
    now = state_of(shard.path)
    if now != before and (now.bytes != before.bytes or sha256_of(shard.path) != shard.file_sha256):
        found = f"{now.bytes:,} bytes" if now.bytes != before.bytes else "other ones"
        what = f"{shard.path} has changed since it was planned: {found}; expected {before.bytes:,} bytes"
        raise StaleError(what, next_step=look_at(shard.path))
    return now


def _json_records(shard: Shard, options: Read) -> Iterator[Record]:
    for row, piece in enumerate(undecoded(shard, options), shard.first_row):
        yield record_of(shard, row, piece)


def record_of(shard: Shard, row: int, piece: Piece) -> Record:
    """A piece decoded, or with its fault."""
    value, fault = None, piece.fault
    if fault is None:
        try:
            value = decode(piece.raw)
        except Rejected as rejected:
            fault = rejected.with_traceback(None)
    return Record(shard.source, shard.name, piece.line, row, piece.raw, value, fault, piece.fatal)


def _session_records(shard: Shard, options: Read, counts: Counter[str]) -> Iterator[Record]:
    """The rows of a session, which is read at once: one without a row is counted, too."""
    with open_binary(shard.path) as file:
        file.seek(shard.start)
        found = gathered(pieces(file, shard, options.max_record_bytes), shard.session, options.max_record_bytes, counts)
    return (one.record(shard, row) for row, one in enumerate(found, shard.first_row))


def _parquet_records(shard: Shard, options: Read, counts: Counter[str]) -> Iterator[Record]:
    for place, found in enumerate(parquet_rows(shard, options.max_record_bytes, counts)):
        yield _parquet_record(shard, place, found)


def _parquet_record(shard: Shard, place: int, found: ParquetRow) -> Record:
    line, row = shard.first_line + place, shard.first_row + place
    return Record(shard.source, shard.name, line, row, found.raw, found.value, found.fault, found.fatal)
