from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnmill.errors import UsageError
from turnmill.shelf import content as under_test
from turnmill.shelf.content import Fault, examine, first_lines, travelling_lines
from turnmill.shelf.manifest import Manifest

ROW = b'{"instruction": "a", "output": "b"}'
CHAT = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]}
RULE = Manifest("facts", "rows.jsonl")
JSON = Manifest("chats", "rows.json", format="json", dialect="auto")


def faults(folder: Path, manifest: Manifest = RULE, limit: int = 1 << 26) -> list[Fault]:
    found: list[Fault] = []
    examine(folder, manifest, limit, found.append)
    return found


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (ROW, 1),
        (ROW + b"\r\n" + ROW + b"\r\n", 2),
        (b"\n \t\n\x0b\n" + ROW + b"\n\n", 1),
        (b'{"instruction": "", "input": "", "output": "", "more": {"x": [1]}}', 1),
        ('{"instruction": "line\u2028separator", "output": "ä"}'.encode(), 1),
        (b'{"instruction": "' + b"x" * 3_000_000 + b'", "output": "b"}', 1),
    ],
)
def test_sound_rows_are_counted_and_hashed(write, content, records):
    found = examine(write("rows.jsonl", content).parent, RULE)
    assert (found.num_records, found.size_bytes, found.is_usable) == (records, len(content), True)
    assert found.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "rows.jsonl: it has no record"),
        (b"\n\n \n", "rows.jsonl: it has no record"),
        (b"\xef\xbb\xbf" + ROW, "rows.jsonl:1: the file begins with a byte-order mark"),
        (ROW + b'\n{"instruction": "a", "outp', "rows.jsonl:2: invalid-json"),
        (ROW + b"\n\n[1]", "rows.jsonl:3: "),
        (b'{"instruction": "\xff", "output": "b"}', "rows.jsonl:1: invalid-utf8"),
        (b'{"instruction": "a"}', "rows.jsonl:1: the row has no 'output'"),
        (b'{"instruction": null, "output": "b"}', "rows.jsonl:1: 'instruction' is None"),
        (b'{"instruction": "a", "input": null, "output": "b"}', "rows.jsonl:1: 'input' is None"),
        (b'{"instruction": "a", "output": ["b"]}', "rows.jsonl:1: 'output' is ['b']"),
        (b'{"Instruction": "a", "output": "b"}', "rows.jsonl:1: the row has no 'instruction'"),
        (b"\x1f\x8b" + ROW, "rows.jsonl:1: "),
    ],
)
def test_the_first_fault_makes_it_unusable(write, content, said):
    with pytest.raises(UsageError) as raised:
        examine(write("rows.jsonl", content).parent, RULE)
    assert str(raised.value).startswith(said)


def test_every_fault_is_told_with_its_line(write):
    folder = write("rows.jsonl", b"{}\n" + ROW + b"\n\n3\n").parent
    assert [fault.line for fault in faults(folder)] == [1, 4]


def test_a_fault_shows_little_of_a_row(write):
    folder = write("rows.jsonl", json.dumps({"instruction": "a", "output": [("private" * 100)]})).parent
    assert len(faults(folder)[0].error) < 140


def test_the_limit_is_on_the_file(write):
    folder = write("rows.jsonl", ROW).parent
    assert faults(folder, limit=len(ROW)) == []
    assert "has 35 bytes; expected at most 34" in faults(folder, limit=len(ROW) - 1)[0].error


def test_a_file_that_grows_while_it_is_read_is_half_written(write):
    path = write("rows.jsonl", b"{}\n" + ROW)

    def grow(fault: Fault) -> None:
        found.append(fault)
        path.write_bytes(path.read_bytes() + ROW)

    found: list[Fault] = []
    assert not examine(path.parent, RULE, on_fault=grow).is_usable
    assert "while it was read" in found[-1].error


def test_rows_of_a_dialect_may_lose_a_few(write):
    folder = write("rows.json", json.dumps([CHAT] * 30 + [{"messages": []}])).parent
    assert examine(folder, JSON).num_records == 31
    assert [(fault.line, fault.error[:11]) for fault in faults(folder, JSON)] == [(31, "no-messages")]


@pytest.mark.parametrize(
    "content", [b"", b'[{"mess', b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"[]", b"\xff\xfe[", b"[{}]", b"PAR1"]
)
@pytest.mark.parametrize("name", ["rows.json", "rows.parquet"])
def test_a_damaged_file_of_any_format_is_a_problem(write, content, name):
    manifest = Manifest("chats", name, format=name.partition(".")[2], dialect="auto")
    with pytest.raises(UsageError, match=r"rows\.") as raised:
        examine(write(name, content).parent, manifest)
    assert "/tmp" not in str(raised.value)


def test_other_rows_travel_as_lines_of_openai(write):
    folder = write("rows.json", json.dumps([CHAT, {"messages": []}, CHAT])).parent
    assert [json.loads(line) for line in travelling_lines(folder, JSON)] == [CHAT, CHAT]
    assert [json.loads(line) for line in first_lines(folder, JSON, 1)] == [CHAT]


def test_rows_of_the_line_rule_travel_as_they_are(write):
    folder = write("rows.jsonl", ROW + b"\r\n\n" + ROW).parent
    assert list(travelling_lines(folder, RULE)) == [ROW, ROW]


def test_columns_and_roles_of_the_manifest_are_used(write):
    row = {"talk": [{"from": "bot", "value": "yo"}]}
    row["talk"].insert(0, {"from": "human", "value": "hi"})
    folder = write("rows.jsonl", json.dumps(row)).parent
    mapped = {"columns": {"messages": "talk"}, "roles": {"bot": "assistant"}}
    found = Manifest("chats", "rows.jsonl", dialect="sharegpt", **mapped)
    assert [json.loads(line) for line in travelling_lines(folder, found)] == [CHAT]


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_preview_is_bounded(write, count):
    with pytest.raises(UsageError, match="expected 1 to 1000"):
        first_lines(write("rows.jsonl", ROW).parent, RULE, count)


def test_a_parquet_file_with_a_damaged_name_is_a_problem(tmp_path):
    pq.write_table(pa.table({"messages": ["a"]}), tmp_path / "rows.parquet")
    content = (tmp_path / "rows.parquet").read_bytes()
    (tmp_path / "rows.parquet").write_bytes(content.replace(b"messages", b"\x8fessages"))
    manifest = Manifest("chats", "rows.parquet", format="parquet", dialect="auto")
    with pytest.raises(UsageError, match=r"cannot read 'rows\.parquet' as Parquet"):
        examine(tmp_path, manifest)


@pytest.mark.parametrize(("name", "row"), [("rows.jsonl", ROW), ("rows.json", json.dumps(CHAT).encode())])
@pytest.mark.parametrize(
    ("limit", "value", "said"), [("MAX_LINE_BYTES", 30, " bytes"), ("MAX_RECORDS", 2, "more than 5,000,000 rows")]
)
def test_rows_are_limited_in_length_and_number(write, monkeypatch, name, row, limit, value, said):
    monkeypatch.setattr(under_test, limit, value)
    content = b"[" + b",".join([row] * 3) + b"]" if name.endswith(".json") else b"\n".join([row] * 3)
    found = faults(write(name, content).parent, JSON if name.endswith(".json") else RULE)
    assert any(said in fault.error for fault in found), found
