import datetime
import decimal
import gzip
import io
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnmill.errors import UsageError
from turnmill.files.parquet import text_bytes
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.options import Read


def stored(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def test_rows_are_the_objects_that_were_written(read) -> None:
    rows = [
        {"id": 2**62, "messages": [{"role": "user", "content": "é\u2028"}], "score": 0.5, "on": True},
        {"id": -1, "messages": [], "score": 1e300, "on": False},
    ]
    found = read(stored(pa.Table.from_pylist(rows)))
    assert [record.value for record in found] == rows
    assert [json.loads(record.raw) for record in found] == rows
    assert [(record.source_line, record.row) for record in found] == [(1, 0), (2, 1)]


def test_keys_that_arrow_invented_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = [{"arguments": {"city": "Oslo"}, "kept": [None, 1]}, {"arguments": {"zip": 150, "city": None}}]
    (tmp_path / "a.parquet").write_bytes(stored(pa.Table.from_pylist(rows)))
    counts: Counter[str] = Counter()
    (shard,) = plan("mine", [str(tmp_path)], Read()).shards
    values = [record.value for record in records(shard, Read(), counts)]
    assert values == [{"arguments": {"city": "Oslo"}, "kept": [None, 1]}, {"arguments": {"zip": 150}}]
    assert counts["read/null-keys-dropped"] == 3


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([datetime.datetime(2024, 1, 2, 3)]), "2024-01-02T03:00:00"),
        (pa.array([datetime.date(2024, 1, 2)]), "2024-01-02"),
        (pa.array([decimal.Decimal("1.50")]), "1.50"),
        (pa.array([datetime.timedelta(hours=26)]), "1 day, 2:00:00"),
        (pa.array([2_000], pa.timestamp("ns")), "1970-01-01T00:00:00.000002"),
        (pa.array([3_000_000_000], pa.duration("ns")), "0:00:03"),
        (pa.array([[("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int64())), {"a": 1, "b": None}),
        (pa.array(["x"]).dictionary_encode(), "x"),
        (pa.array(["2024-01-02"]), "2024-01-02"),
        (pa.array([1], pa.uint64()), 1),
    ],
)
def test_values_take_their_json_form(read, column: pa.Array, expected: object) -> None:
    (record,) = read(stored(pa.table({"a": column})))
    assert record.value == {"a": expected}


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (pa.array([b"\x00"]), "value-not-json"),
        (pa.array([float("nan")]), "non-finite-number"),
        (pa.array([float("inf")], pa.float32()), "non-finite-number"),
        (pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())), "duplicate-key"),
        (pa.array([1], pa.timestamp("ns")), "value-not-json"),
        (pa.array([1], pa.duration("ns")), "value-not-json"),
        (pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")), "invalid-utf8"),
        (pa.array(["x" * 100]), "record-too-large"),
    ],
)
def test_a_value_without_json_form_rejects_its_row_alone(read, column: pa.Array, code: str) -> None:
    table = pa.table({"a": pa.concat_arrays([column, pa.nulls(1, column.type)])})
    bad, good = read(stored(table), max_record_bytes=50)
    assert bad.fault.code == code
    assert not bad.fatal
    assert good.value == {}


@pytest.mark.parametrize("shard_bytes", [1, 200, 1 << 30])
def test_row_groups_are_numbered_alike_for_any_shards(tmp_path: Path, shard_bytes: int) -> None:
    table = pa.table({"n": range(100)})
    (tmp_path / "a.parquet").write_bytes(stored(table, row_group_size=7))
    planned = plan("mine", [str(tmp_path)], Read(), first_row=5, shard_bytes=shard_bytes)
    found = [record for shard in planned.shards for record in records(shard, Read())]
    assert [(r.row, r.source_line, r.value) for r in found] == [(n + 5, n + 1, {"n": n}) for n in range(100)]
    assert (len(planned.shards) > 1) == (shard_bytes < 1 << 30)


def test_a_parquet_file_that_is_compressed_as_a_whole_is_read(read) -> None:
    table = pa.table({"n": range(10)})
    found = read(gzip.compress(stored(table, row_group_size=3)), shard_bytes=1)
    assert [record.value["n"] for record in found] == list(range(10))


def test_a_damaged_row_group_is_one_fatal_fault(tmp_path: Path) -> None:
    content = bytearray(
        stored(pa.table({"n": ["text " * 20] * 50}), row_group_size=10, compression="zstd", use_dictionary=False)
    )
    metadata = pq.read_metadata(io.BytesIO(content))
    start = metadata.row_group(2).column(0).data_page_offset
    content[start : start + 40] = b"\xff" * 40
    (tmp_path / "a.parquet").write_bytes(content)
    planned = plan("mine", [str(tmp_path)], Read())
    found = [record for shard in planned.shards for record in records(shard, Read())]
    assert [record.row for record in found] == list(range(21))
    assert (found[-1].fault.code, found[-1].fatal) == ("damaged-file", True)


def test_sizes_are_the_bytes_of_all_texts_however_deep(tmp_path: Path) -> None:
    rows = [
        {"messages": [{"role": "user", "content": "né"}, {"role": "a", "content": None}], "id": 7, "note": "x"},
        {"messages": [], "id": 8, "note": None},
        {"messages": None, "id": 9, "note": "y" * 40},
        {"messages": [{"role": "u", "content": "z" * n} for n in range(30)], "id": 10, "note": ""},
    ]
    table = pa.Table.from_pylist(rows * 3)
    table = table.set_column(2, "note", table.column("note").dictionary_encode())
    (tmp_path / "a.parquet").write_bytes(stored(table, row_group_size=5))
    sizes = [
        size for shard in plan("mine", [str(tmp_path)], Read(), shard_bytes=1).shards for size in text_bytes(shard)
    ]
    assert sizes == [4 + 3 + 1 + 1, 0, 40, 30 + sum(range(30))] * 3


def test_sizes_of_a_damaged_file_are_an_error_that_names_it(tmp_path: Path) -> None:
    content = stored(pa.table({"text": [f"{n} text" for n in range(5000)]}))
    (tmp_path / "a.parquet").write_bytes(content[:60] + bytes(400) + content[460:])
    with pytest.raises(UsageError, match=r"a\.parquet is damaged"):
        text_bytes(plan("mine", [str(tmp_path)], Read()).shards[0])
