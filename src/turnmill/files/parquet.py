"""Rows of a Parquet file as objects: plain Python values, without the keys that Arrow invented."""

from __future__ import annotations

import datetime
import decimal
import math
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.errors import Rejected, UsageError
from turnmill.files.compressed import BrokenStream, unpacked
from turnmill.files.record import KEPT_OF_TOO_LARGE, Compression, Shard, too_large
from turnmill.files.storage import look_at, open_binary
from turnmill.files.stores import is_url

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from numpy.typing import NDArray

BATCH_ROWS = 1000
_BUFFER_BYTES = 1 << 20


class ParquetRow(NamedTuple):
    """One row: its JSON text, and its object or its fault."""

    raw: bytes
    value: dict[str, Json] | None
    fault: Rejected | None
    fatal: bool = False


@contextmanager
def opened(path: str, compression: Compression) -> Iterator[pq.ParquetFile]:
    """The Parquet file, first unpacked to a temporary file where it is compressed as a whole.

    Raises:
        UsageError: it cannot be read as Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_binary(path) as stored, _seekable(stored, compression, path) as file:
        try:
            source = path if file is stored and not is_url(path) else file  # a path lets Arrow read by itself
            parquet = pq.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER_BYTES)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            raise UsageError(
                f"cannot read {path} as Parquet: {_first_line(problem)}", next_step=look_at(path)
            ) from problem
        with parquet:
            yield parquet


@contextmanager
def _seekable(stored: BinaryIO, compression: Compression, path: str) -> Iterator[BinaryIO]:
    if compression == "none":
        yield stored
        return
    with tempfile.TemporaryFile() as spool:
        try:
            for chunk in unpacked(stored, compression):
                spool.write(chunk)
        except BrokenStream as broken:
            raise UsageError(f"cannot read {path}: {broken}", next_step=look_at(path)) from broken
        spool.seek(0)
        yield spool


def parquet_rows(
    shard: Shard, limit: int, counts: Counter[str], places: Sequence[int] | None = None
) -> Iterator[ParquetRow]:
    """The rows of the shard's row groups, in order.

    Args:
        shard: a shard of layout `parquet`.
        limit: bytes of JSON text of the largest row.
        counts: takes `read/null-keys-dropped` and `read/values-as-text`.
        places: of the rows in the shard, rising, where not all are wanted.
    """
    import pyarrow as pa

    first = 0

    with opened(shard.path, shard.compression) as parquet:
        try:
            for group in range(shard.start, shard.end):
                for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=False):
                    wanted = batch if places is None else batch.take(_inside(places, first, batch.num_rows))
                    first += batch.num_rows
                    yield from (_row(values, limit, counts) for values in _values(wanted))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            fault = Rejected("damaged-file", f"the Parquet file is damaged: {_first_line(problem)}")
            yield ParquetRow(b"", None, fault, fatal=True)


def text_bytes(shard: Shard) -> list[int]:
    """Bytes of the texts in each row of the shard's row groups, however deep they lie; nothing becomes an object.

    Raises:
        UsageError: the file is damaged.
    """
    import pyarrow as pa

    sizes: list[int] = []
    with opened(shard.path, shard.compression) as parquet:
        try:
            for group in range(shard.start, shard.end):
                for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=False):
                    sizes += bytes_of_texts(batch.to_struct_array()).tolist()
        except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
            what = f"{shard.path} is damaged: {_first_line(problem)}"
            raise UsageError(what, next_step=look_at(shard.path)) from problem
    return sizes


def bytes_of_texts(column: pa.Array) -> NDArray[np.int64]:
    """(rows,) bytes of the texts in each value; 0 for a number."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return bytes_of_texts(column.dictionary_decode())
    if pa.types.is_struct(kind):
        sizes = np.zeros(len(column), np.int64)
        for field in column.flatten():
            sizes += bytes_of_texts(field)
        return sizes
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        before: NDArray[np.int64] = np.concatenate([[0], np.cumsum(bytes_of_texts(column.flatten()))])
        ends = np.cumsum(lengths, dtype=np.int64)
        sizes = before[ends]
        sizes -= before[ends - lengths]
        return sizes
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.asarray(pc.fill_null(pc.binary_length(column), 0).to_numpy(), dtype=np.int64)
    return np.zeros(len(column), np.int64)


def _inside(places: Sequence[int], first: int, rows: int) -> pa.Array:
    """Those of the rising places that lie in a batch, counted from its first row."""
    import pyarrow as pa

    own = places[bisect_left(places, first) : bisect_left(places, first + rows)]
    return pa.array([place - first for place in own], pa.int64())


def _values(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | Rejected]:
    """Each row's values; row by row where the batch holds one that Python cannot."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for number in range(batch.num_rows):
            try:
                yield batch.slice(number, 1).to_pylist()[0]
            except UnicodeDecodeError as problem:
                yield Rejected("invalid-utf8", f"a text of the row is not UTF-8: {problem.reason}")
            except (ValueError, OverflowError) as problem:
                yield Rejected("value-not-json", f"a value of the row has no JSON form: {_first_line(problem)}")


def _row(values: dict[str, Any] | Rejected, limit: int, counts: Counter[str]) -> ParquetRow:
    if isinstance(values, Rejected):
        return ParquetRow(b"", None, values)
    try:
        value = _plain(values, counts)
    except Rejected as fault:
        return ParquetRow(msgspec.json.encode(values, enc_hook=repr), None, fault)
    raw = msgspec.json.encode(value)
    if len(raw) > limit:
        return ParquetRow(raw[:KEPT_OF_TOO_LARGE], None, too_large(limit))
    return ParquetRow(raw, value, None)


def _plain(value: Any, counts: Counter[str]) -> Json:
    """The JSON value of an Arrow one: maps as objects, dates and decimals as text, struct keys that are null left out.

    In a struct, Arrow gives every row the keys of all rows, with nulls, so a null key says nothing.

    Raises:
        Rejected: bytes, or a number that JSON has not.
    """
    match value:
        case str() | bool() | int() | None:
            return value
        case float() if math.isfinite(value):
            return value
        case float():
            raise Rejected("non-finite-number", f"{value} is not a JSON number")
        case dict():
            kept = {key: _plain(item, counts) for key, item in value.items() if item is not None}
            counts["read/null-keys-dropped"] += len(value) - len(kept)
            return kept
        case [(_, _), *_] if isinstance(value[0], tuple):
            return _object_of_map(value, counts)
        case list():
            return [_plain(item, counts) for item in value]
        case datetime.datetime() | datetime.date() | datetime.time():
            _refuse_nanoseconds(value)
            counts["read/values-as-text"] += 1
            return value.isoformat()
        case datetime.timedelta():
            _refuse_nanoseconds(value)
            counts["read/values-as-text"] += 1
            return str(datetime.timedelta(value.days, value.seconds, value.microseconds))
        case decimal.Decimal():
            counts["read/values-as-text"] += 1
            return str(value)
        case _:
            raise Rejected("value-not-json", f"a value of type {type(value).__name__} has no JSON form")


def _refuse_nanoseconds(value: Any) -> None:
    """Refuse a time that Python cannot hold; Arrow does so itself, but where pandas is installed.

    Raises:
        Rejected: `value-not-json`.
    """
    if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
        raise Rejected("value-not-json", f"a time of the row is finer than a microsecond: {value}")


def _object_of_map(pairs: list[tuple[Any, Any]], counts: Counter[str]) -> dict[str, Json]:
    entries = {str(key): _plain(item, counts) for key, item in pairs}
    if len(entries) != len(pairs):
        raise Rejected("duplicate-key", "a key stands twice in one map")
    return entries


def _first_line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]
