"""Parquet files written batch by batch: memory is bounded by the batch, bytes depend on the rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1000
"""Rows of a batch, and of a row group."""

GROUP_OF_COLUMNS = 65_536
"""Rows of a row group in a table of a few numbers a row."""

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


class BatchWriter:
    """A Parquet file of parts of stored batches, in row groups of about `BATCH_ROWS`."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._batches: list[pa.RecordBatch] = []
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch, indices: Sequence[int]) -> None:
        """Add those rows of a batch."""
        if indices:
            self._batches.append(batch if len(indices) == batch.num_rows else batch.take(indices))
        if sum(held.num_rows for held in self._batches) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
            self._batches = []

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()


class RegroupedWriter:
    """A Parquet file of stored batches whose row groups do not hang on how the rows came: they are of `group_rows`.

    Args:
        path: the file.
        schema: of every batch.
        group_rows: rows of a row group; the last holds what is left.
    """

    def __init__(self, path: Path, schema: pa.Schema, group_rows: int = BATCH_ROWS) -> None:
        import pyarrow.parquet as pq

        self._schema, self._group_rows = schema, group_rows
        self._held: list[pa.RecordBatch] = []
        self._rows = 0
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        while self._rows + batch.num_rows >= self._group_rows:
            missing = self._group_rows - self._rows
            self._held.append(batch.slice(0, missing))
            self._flush()
            batch = batch.slice(missing)
        if batch.num_rows:
            self._held.append(batch)
            self._rows += batch.num_rows

    def _flush(self) -> None:
        import pyarrow as pa

        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held, self._schema).combine_chunks())
        self._held, self._rows = [], 0

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()


def batches(
    path: Path, columns: Sequence[str] | None = None, groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """A Parquet file's batches of at most `BATCH_ROWS` rows.

    Args:
        path: the file.
        columns: those alone; None = all.
        groups: of these row groups alone; None = of all.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as stored:
        yield from stored.iter_batches(
            BATCH_ROWS, columns=None if columns is None else list(columns), row_groups=groups
        )


class GroupRange(NamedTuple):
    """Some neighbouring row groups of a Parquet file."""

    first: int
    end: int
    rows: int


def group_ranges(path: Path, most_rows: int) -> list[GroupRange]:
    """The file's row groups in ranges of at most `most_rows` rows, at least one group each."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    ranges: list[GroupRange] = []
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        if ranges and ranges[-1].rows + rows <= most_rows:
            ranges[-1] = GroupRange(ranges[-1].first, number + 1, ranges[-1].rows + rows)
        else:
            ranges.append(GroupRange(number, number + 1, rows))
    return ranges


def write_columns(path: Path, columns: Mapping[str, Iterable[Any]], schema: pa.Schema) -> None:
    """A small Parquet file from whole columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {name: pa.array(values, type=schema.field(name).type) for name, values in columns.items()}
    pq.write_table(pa.table(arrays, schema=schema), path, compression="zstd", row_group_size=GROUP_OF_COLUMNS)
