"""Parquet files written batch by batch: memory is bounded by the batch, bytes depend on the rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1000
"""Rows of a batch, and of a row group."""

Row = TypeVar("Row")


class TableWriter(Generic[Row]):
    """A Parquet file of rows, in row groups of `BATCH_ROWS`; without rows it holds the schema alone.

    Args:
        path: the file; its folder is there.
        schema: of every batch.
        to_table: rows → their table.
    """

    def __init__(self, path: Path, schema: pa.Schema, to_table: Callable[[list[Row]], pa.Table]) -> None:
        import pyarrow.parquet as pq

        self._to_table = to_table
        self._rows: list[Row] = []
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, row: Row) -> None:
        """Add a row."""
        self._rows.append(row)
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._to_table(self._rows))
            self._rows = []

    def __enter__(self) -> TableWriter[Row]:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            self._flush()
        self._writer.close()


def batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """A Parquet file's batches of at most `BATCH_ROWS` rows."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as stored:
        yield from stored.iter_batches(BATCH_ROWS, columns=None if columns is None else list(columns))


def write_columns(path: Path, columns: dict[str, Iterable[Any]], schema: pa.Schema) -> None:
    """A small Parquet file from whole columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {name: pa.array(values, type=schema.field(name).type) for name, values in columns.items()}
    pq.write_table(pa.table(arrays, schema=schema), path, compression="zstd")
