"""Known faults of data files: the exact bytes, and what `turnmill check` says of each row."""

from __future__ import annotations

import gzip
import json

import pytest
import zstandard

from chats import chat

A, B = json.dumps(chat("hi", "yo")), json.dumps(chat("x\r\ny", "z"))
PRETTY = json.dumps(chat("hi", "yo"), indent=1)
CUT = gzip.compress(f"{A}\n{B}\n".encode() * 40, mtime=0)
PACKED = zstandard.compress(f"{A}\n{B}\n".encode() * 40)
SURROGATE = (
    '{"messages": [{"role": "user", "content": "x \\ud83d y"}, {"role": "assistant", "content": "\\ud83d\\ude00"}]}'
)
TWICE = (
    '{"messages": [{"role": "user", "content": "keep me", "content": "or me"}, {"role": "assistant", "content": "y"}]}'
)
NUL = json.dumps(chat("a\0b", "yo"))
SEPARATORS = json.dumps(chat("a\u2028b\x85c", "yo"), ensure_ascii=False)
HUGE = '{"messages": [], "n": 123456789012345678901234567890}'
LATE = "".join(f"{A}\n" for _ in range(3000)) + json.dumps(
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}, {"role": "assistant", "content": "b"}]}
)

ROWS = {
    "byte-order mark": (b"\xef\xbb\xbf" + A.encode(), [(1, None)]),
    "CRLF ends": (f"{A}\r\n\r\n{B}\r\n".encode(), [(1, None), (3, None)]),
    "array in a .jsonl": (f"[\n {A},\n {B}\n]".encode(), [(1, None), (2, None)]),
    "pretty-printed objects": (f"{PRETTY}\n{PRETTY}\n".encode(), [(1, None), (13, None)]),
    "lone surrogate": (f"{SURROGATE}\n{A}\n".encode(), [(1, "lone-surrogate"), (2, None)]),
    "key twice": (f"{TWICE}\n{A}\n".encode(), [(1, "duplicate-key"), (2, None)]),
    "bytes that are no UTF-8": (b'{"messages": "\xff"}\n' + A.encode(), [(1, "invalid-utf8"), (2, None)]),
    "line cut off": (f"{A}\n{B[:30]}\n{A}\n".encode(), [(1, None), (2, "invalid-json"), (3, None)]),
    "NaN": (f'{{"messages": [], "n": NaN}}\n{A}\n'.encode(), [(1, "non-finite-number"), (2, None)]),
    "blank lines, no last end": (f"\n{A}\n\n  \n{B}".encode(), [(2, None), (5, None)]),
    "NUL in text": (f"{NUL}\n".encode(), [(1, None)]),
    "line separators in text": (f"{SEPARATORS}\n".encode(), [(1, None)]),
    "number of any size": (f"{HUGE}\n{A}\n".encode(), [(1, "no-messages"), (2, None)]),
    "gzip of two members": (b"".join(gzip.compress(f"{row}\n".encode()) for row in (A, B)), [(1, None), (2, None)]),
    "zstd of two frames": (b"".join(zstandard.compress(f"{row}\n".encode()) for row in (A, B)), [(1, None), (2, None)]),
    "not an object": (f"[1]\n{A}\n".encode(), [(1, "record-not-an-object"), (2, None)]),
}  # fmt: skip


@pytest.mark.parametrize("what", ROWS)
def test_each_row_gets_its_right_answer(turnmill, write, what):
    content, right = ROWS[what]
    answer = turnmill("check", write("rows.jsonl", content), "--json", "--health.max_rejected", "1")
    assert [(row["source_line"], row["code"]) for row in answer.rows] == right
    assert answer.code == 0


TEXTS = [("CRLF ends", 1, "x\r\ny"), ("NUL in text", 0, "a\0b"), ("line separators in text", 0, "a\u2028b\x85c")]


@pytest.mark.parametrize(("what", "row", "user"), TEXTS)
def test_text_is_kept_byte_for_byte(turnmill, write, what, row, user):
    answer = turnmill("check", write("rows.jsonl", ROWS[what][0]), "--json")
    assert answer.rows[row]["turns"][0] == ["user", user]


def test_content_that_turns_into_a_list_late_in_the_file_is_still_text(turnmill, write):
    rows = turnmill("check", write("rows.jsonl", LATE), "--json").rows
    assert len(rows) == 3001
    assert rows[-1]["turns"] == [["user", "hi"], ["final", "b"]]


NAMES = [("rows.jsonl.gz", bytes), ("rows.jsonl.zst", gzip.compress), ("rows.jsonl", zstandard.compress),
         ("rows.parquet", bytes), ("rows.txt", gzip.compress), ("rows", bytes)]  # fmt: skip


@pytest.mark.parametrize(("name", "pack"), NAMES, ids=[name for name, _ in NAMES])
def test_content_says_what_a_file_is_whatever_its_name(turnmill, write, name, pack):
    answer = turnmill("check", write(name, pack(f"{A}\n{B}\n".encode())), "--json")
    assert [row["code"] for row in answer.rows] == [None, None]


FILES = [
    ("empty", b"", 2, "empty"),
    ("UTF-16", A.encode("utf-16"), 2, "UTF-16"),
    ("truncated gzip", CUT[: len(CUT) - 20], 3, "rows.jsonl"),
    ("truncated zstd", PACKED[: len(PACKED) - 9], 3, "rows.jsonl"),
    ("damaged gzip", CUT[:60] + b"\0" * 8 + CUT[68:], 3, "rows.jsonl"),
    ("array cut off", f"[{A}, {A}, {B[:10]}".encode(), 3, "rows.jsonl"),
    ("no row of it is a chat", b'{"messages": []}\n' * 3, 3, "no-messages"),
]


@pytest.mark.parametrize(("content", "code", "message"), [rest for _, *rest in FILES], ids=[name for name, *_ in FILES])
def test_a_file_that_is_broken_as_a_whole_is_named(turnmill, write, content, code, message):
    answer = turnmill("check", write("rows.jsonl", content))
    assert answer.code == code
    assert message in answer.err
    assert "Traceback" not in answer.err


def test_tags_that_are_configured_wrong_stop_the_source_and_say_what_was_seen(turnmill, write):
    turns = [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]
    path = write("rows.jsonl", (json.dumps({"conversations": turns}) + "\n") * 30)
    config = {"sources": [{"name": "s", "data": str(path), "dialect": "sharegpt", "tags": {"role": "speaker"}}]}
    answer = turnmill("check", write("run.yaml", json.dumps(config)))
    assert answer.code == 3
    assert "none of its 30 rows was accepted" in answer.err
