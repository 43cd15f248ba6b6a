"""Reading a shard: its records one by one, good and bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from turnmill.errors import Rejected, StaleError
from turnmill.files.decode import decode
from turnmill.files.json_text import pieces
from turnmill.files.parquet import parquet_rows
from turnmill.files.record import Piece, Record, Shard
from turnmill.files.storage import look_at, open_binary, size
from turnmill.options import Read


def records(shard: Shard, options: Read, counts: Counter[str] | None = None) -> Iterator[Record]:
    """The shard's records in order; never holds more than a batch of them.

    A bad record comes with its fault and does not end the shard, unless it is `fatal`.

    Args:
        shard: a stretch of a file, from `plan`.
        options: what makes a record too large.
        counts: takes `read/<what>` where given.

    Raises:
        StaleError: the file is not as it was when the shard was planned.
        UsageError: the file cannot be read.
    """
    if size(shard.path) != shard.file_bytes:
        what = f"{shard.path} has changed since it was planned; expected {shard.file_bytes:,} bytes"
        raise StaleError(what, next_step=look_at(shard.path))
    if shard.layout == "parquet":
        return _parquet_records(shard, options, Counter() if counts is None else counts)
    return _json_records(shard, options)


def _json_records(shard: Shard, options: Read) -> Iterator[Record]:
    with open_binary(shard.path) as file:
        file.seek(shard.start)
        for row, piece in enumerate(pieces(file, shard, options.max_record_bytes), shard.first_row):
            yield _record(shard, row, piece)


def _record(shard: Shard, row: int, piece: Piece) -> Record:
    value, fault = None, piece.fault
    if fault is None:
        try:
            value = decode(piece.raw)
        except Rejected as rejected:
            fault = rejected.with_traceback(None)
    return Record(shard.source, shard.name, piece.line, row, piece.raw, value, fault, piece.fatal)


def _parquet_records(shard: Shard, options: Read, counts: Counter[str]) -> Iterator[Record]:
    for number, found in enumerate(parquet_rows(shard, options.max_record_bytes, counts)):
        line, row = shard.first_line + number, shard.first_row + number
        yield Record(shard.source, shard.name, line, row, found.raw, found.value, found.fault, found.fatal)
