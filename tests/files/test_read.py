import gzip
import json
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnmill.errors import StaleError, UsageError
from turnmill.files.plan import plan
from turnmill.files.read import picked, records
from turnmill.files.record import KEPT_OF_TOO_LARGE, Record
from turnmill.options import Read

A, B, C = b'{"a": 1}', b'{"b": {"c": [2, "}]"]}}', b'{"c": "\\"{["}'
NOT_OBJECT = "record-not-an-object"
PRETTY = json.dumps({"a": [{"b": 1}, {"b": 2}]}, indent=2).encode()


def lines_and_codes(found: list[Record]) -> list[tuple[int, str | None]]:
    return [(record.source_line, record.fault.code if record.fault else None) for record in found]


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (A + b"\n" + B + b"\n", [(1, None), (2, None)]),
        (A + b"\n" + B, [(1, None), (2, None)]),
        (b"\xef\xbb\xbf" + A + b"\n" + B, [(1, None), (2, None)]),
        (b"\n" + A + b"\n\n \t\r\n" + B, [(2, None), (5, None)]),
        (A + b"\r\n" + B + b"\r\n", [(1, None), (2, None)]),
        (b'{"a": "x\\r\\ny \xe2\x80\xa8 \xc2\x85"}\n', [(1, None)]),
        (A + b",\n" + B + b"\n", [(1, "invalid-json"), (2, None)]),
        (b'{"a": \n' + A + b"\n" + B, [(1, "invalid-json"), (2, None), (3, None)]),
        (A + b"\n\xff\n" + B, [(1, None), (2, "invalid-utf8"), (3, None)]),
        (b"[1]\n" + A + b"\n", [(1, NOT_OBJECT), (2, None)]),
        (b"prompt,answer\n1,2\n", [(1, "invalid-json"), (2, "invalid-json")]),
        (b"[" + A + b"," + B + b"]", [(1, None), (2, None)]),
        (b"\xef\xbb\xbf [\n" + A + b"\n,\n" + B + b"]\n", [(1, None), (2, None)]),
        (b'[1, "a,]", {}, [[]]]', [(1, NOT_OBJECT), (2, NOT_OBJECT), (3, None), (4, NOT_OBJECT)]),
        (b'[{"a": NaN}, {"b": 1,}, {}]', [(1, "non-finite-number"), (2, "invalid-json"), (3, None)]),
        (b"[" + A + b", ]", [(1, None), (2, "broken-array")]),
        (b"[" + A + B + b"]", [(1, "broken-array")]),
        (b"[" + A + b", " + B[:-2], [(1, None), (2, "broken-array")]),
        (b"[" + A + b", ", [(1, None), (2, "broken-array")]),
        (b"[" + A + b"] x", [(1, None), (2, "broken-array")]),
        (PRETTY + b"\n" + PRETTY, [(1, None), (11, None)]),
        (A + A + b"\n" + C, [(1, None), (1, None), (2, None)]),
        (PRETTY + b"\nnot json\n" + PRETTY, [(1, None), (11, "invalid-json"), (12, None)]),
        (PRETTY + b"\n" + PRETTY[:-2], [(1, None), (11, "truncated-file")]),
    ],
    ids=lambda value: repr(value)[:50] if isinstance(value, bytes) else "",
)  # fmt: skip
def test_records_of_every_layout_are_found_by_content(read, content: bytes, expected: list) -> None:
    found = read(content)
    assert lines_and_codes(found) == expected
    assert [record.row for record in found] == list(range(len(found)))
    assert all((record.value is None) == (record.fault is not None) for record in found)
    for packed in (gzip.compress(content), zstd(content)):
        again = read(packed, name="rows.bin")
        assert [(r.raw, r.value, r.source_line) for r in again] == [(r.raw, r.value, r.source_line) for r in found]


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_members_and_frames_are_read_one_after_another(read, pack) -> None:
    assert len(read(pack(A + b"\n") + pack(B[:5]) + pack(B[5:] + b"\n" + C))) == 3


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
@pytest.mark.parametrize(("cut", "code"), [(-6, "truncated-file"), (-1, "truncated-file")])
def test_a_truncated_file_is_one_fatal_fault_behind_its_good_rows(read, pack, cut: int, code: str) -> None:
    content = b"".join(b'{"n": %d}\n' % number for number in range(1000))
    found = read(pack(content)[:cut])
    assert found[-1].fault.code == code
    assert found[-1].fatal
    assert [record.value for record in found[:-1]] == [{"n": number} for number in range(len(found) - 1)]


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_damaged_file_is_one_fatal_fault(read, pack) -> None:
    found = read(pack(A + b"\n") + b"\x00garbage behind")
    assert lines_and_codes(found)[0] == (1, None)
    assert (found[-1].fault.code, found[-1].fatal) == ("damaged-file", True)


@pytest.mark.parametrize("wrap", [b"%s\n{}", b"[%s, {}]", b"{\n}%s\n{}"])
def test_a_record_over_the_limit_is_a_fault_and_the_next_one_is_read(read, wrap: bytes) -> None:
    big = b'{"text": "' + b"x" * 3_000_000 + b'"}'
    found = read(wrap % big, max_record_bytes=2_000_000)
    fault = next(record for record in found if record.fault)
    assert fault.fault.code == "record-too-large"
    assert fault.raw == big[:KEPT_OF_TOO_LARGE]
    assert found[-1].value == {}
    assert not any(record.fault for record in read(wrap % big, max_record_bytes=len(big) + 1))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"[]", b"\xef\xbb\xbf", b"[ ]\n", gzip.compress(b"", mtime=0)])
def test_a_file_without_a_record_is_an_error_that_names_it(read, content: bytes) -> None:
    with pytest.raises(UsageError, match=r"rows\.jsonl is empty"):
        read(content)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"a": 1}'.encode("utf-16"), "UTF-16"),
        ('{"a": 1}'.encode("utf-16-le"), "UTF-16LE"),
        ('{"a": 1}'.encode("utf-32"), "UTF-32"),
        (b"BZh91AY", "bzip2"),
        (b"PK\x03\x04aaaa", "zip"),
        (b"ARROW1\x00\x00", "Arrow IPC"),
        (b"PAR1 but not really", "as Parquet"),
    ],
)
def test_what_is_not_read_is_refused_by_name(read, content: bytes, what: str) -> None:
    with pytest.raises(UsageError, match=rf"rows\.jsonl.*{what}"):
        read(content)


def test_a_string_that_spans_chunks_keeps_its_escapes(read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnmill.files.storage.CHUNK_BYTES", 1)
    value = {"a": '\\"]}{[,', "b": ["\\\\", {"c": '"'}]}
    content = json.dumps([value, value]).encode()
    assert [record.value for record in read(content)] == [value, value]
    assert [record.raw for record in read(content)] == [json.dumps(value).encode()] * 2


def test_a_file_that_changed_since_the_plan_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(A)
    shard = plan("mine", [str(path)], Read()).shards[0]
    path.write_bytes(A + b"\n" + B)
    with pytest.raises(StaleError, match="has changed"):
        list(records(shard, Read()))


line = st.one_of(
    st.just(A), st.just(B), st.just(b""), st.just(b"  "), st.just(b"{"), st.just(b"\xff"), st.just(b"\xe2\x80\xa8"),
    st.integers(0, 300).map(lambda count: b'{"x": "' + b"y" * count + b'"}'),
)  # fmt: skip


@given(
    st.lists(line, max_size=30), st.integers(1, 400), st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.booleans()
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
def test_every_line_is_in_exactly_one_shard(tmp_path, lines, shard_bytes, end, ends, mark) -> None:
    lines = [A, *lines]  # the layout is told by the first
    content = (b"\xef\xbb\xbf" if mark else b"") + end.join(lines) + (end if ends else b"")
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    options = Read(max_record_bytes=200)
    many = plan("mine", [str(path)], options, first_row=7, shard_bytes=shard_bytes)
    one = plan("mine", [str(path)], options, first_row=7, shard_bytes=1 << 30)
    apart = [[(r.row, r.source_line, r.raw, r.value) for r in records(shard, options)] for shard in many.shards]
    together = list(chain.from_iterable(apart))
    assert together == [(r.row, r.source_line, r.raw, r.value) for r in records(one.shards[0], options)]
    assert [len(part) for part in apart] == [shard.rows for shard in many.shards]
    assert [(number, raw.removesuffix(b"\r")) for _, number, raw, _ in together] == [
        (number, raw[:KEPT_OF_TOO_LARGE]) for number, raw in enumerate(lines, 1) if raw.strip()
    ]
    stretches = [(shard.start, shard.end) for shard in many.shards]
    assert all(before[1] == after[0] for before, after in pairwise(stretches))
    assert many.files == one.files


def test_rows_count_on_over_files_and_sources(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(A + b"\n{\n" + B)
    (tmp_path / "b.json").write_bytes(b"[{}, {}]")
    planned = plan("mine", [str(tmp_path)], Read(), first_row=10)
    rows = [(r.source_file, r.row) for shard in planned.shards for r in records(shard, Read(), Counter())]
    assert rows == [("a.jsonl", 10), ("a.jsonl", 11), ("a.jsonl", 12), ("b.json", 13), ("b.json", 14)]
    assert [text.split()[0] for text in planned.inputs] == ["mine/a.jsonl", "mine/b.json"]


@pytest.mark.parametrize("places", [[0], [1, 4], [0, 1, 2, 3, 4], []])
@pytest.mark.parametrize("shard_bytes", [1, 1 << 30])
def test_picked_records_are_those_of_a_whole_reading(tmp_path: Path, places: list[int], shard_bytes: int) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([A, b"{", B, A, b"\xff", B]))
    pq.write_table(pa.table({"n": range(6)}), tmp_path / "b.parquet", row_group_size=2)
    for shard in plan("mine", [str(tmp_path)], Read(), first_row=3, shard_bytes=shard_bytes).shards:
        own = [place for place in places if place < shard.rows]
        whole = list(records(shard, Read()))
        found = list(picked(shard, Read(), own))
        shown = [(one.row, one.source_line, one.raw, one.value, one.fault and one.fault.code) for one in found]
        assert shown == [
            (one.row, one.source_line, one.raw, one.value, one.fault and one.fault.code)
            for one in (whole[place] for place in own)
        ]
