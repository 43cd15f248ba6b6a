from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnmill.files.tables import BATCH_ROWS, RegroupedWriter, TableWriter, batches, write_columns

SCHEMA = pa.schema([pa.field("number", pa.int64(), nullable=False)])


def to_table(rows: list[int]) -> pa.Table:
    return pa.table({"number": rows}, schema=SCHEMA)


@pytest.mark.parametrize("count", [0, 1, BATCH_ROWS, BATCH_ROWS + 1])
def test_rows_come_back_in_order_in_bounded_row_groups(tmp_path, count):
    path = tmp_path / "a.parquet"
    with TableWriter(path, SCHEMA, to_table) as writer:
        for number in range(count):
            writer.write(number)
    assert [n for batch in batches(path) for n in batch.column("number").to_pylist()] == list(range(count))
    assert pq.read_metadata(path).num_row_groups == -(-count // BATCH_ROWS)
    assert pq.read_schema(path).equals(SCHEMA)


def test_a_fault_leaves_the_last_rows_out(tmp_path):
    path = tmp_path / "a.parquet"
    with suppress(RuntimeError), TableWriter(path, SCHEMA, to_table) as writer:
        writer.write(1)
        raise RuntimeError
    assert pq.read_metadata(path).num_rows == 0


def test_columns_are_chosen_by_name(tmp_path):
    schema = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.bool_())])
    write_columns(tmp_path / "a.parquet", {"a": [1, 2], "b": [True, False]}, schema)
    (batch,) = batches(tmp_path / "a.parquet", ["b"])
    assert batch.to_pydict() == {"b": [True, False]}


@pytest.mark.parametrize("rows", [0, 5, 9, 10, 40, 41])
@pytest.mark.parametrize("batch", [1, 7, 10, 100])
def test_how_rows_come_changes_no_byte_of_a_regrouped_file(tmp_path, rows, batch):
    schema = pa.schema([pa.field("row", pa.int64(), nullable=False), pa.field("text", pa.string())])
    columns = {"row": list(range(rows)), "text": [f"text {row % 3}" if row % 4 else None for row in range(rows)]}
    table = pa.table(columns, schema=schema)
    pq.write_table(table, tmp_path / "whole.parquet", compression="zstd", row_group_size=10)
    out = RegroupedWriter(tmp_path / "regrouped.parquet", schema, 10)
    for part in table.to_batches(max_chunksize=batch):
        out.write(part)
    out.close()
    assert pq.read_metadata(tmp_path / "regrouped.parquet").num_row_groups == -(-rows // 10)
    if rows:
        assert (tmp_path / "regrouped.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
