"""Texts that editors, parsers and terminals trip over: kept as recorded, or rejected with a code."""

from __future__ import annotations

import json
import unicodedata

import pytest

from chats import chat

KEPT = {
    "byte-order mark inside": "a\ufeffb",
    "byte-order mark first": "\ufeffa",
    "line and paragraph separators": "a\u2028b\u2029c\x85d\x0b\x0c",
    "NUL": "a\0b\0",
    "control characters": "".join(map(chr, range(1, 32))),
    "escape sequences": "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "bidirectional overrides": "\u202egnp.exe\u202c \u2066a\u2069 \u200f\u200e",
    "a flood of combining marks": "e" + "\u0301\u0323" * 200,
    "non-characters": "\ufffe\uffff\ufdd0\U0001fffe\U0010ffff",
    "private use": "\ue000\U000f0000\U0010fffd",
    "mixed line ends": "a\r\nb\rc\nd\n\re",
    "composed and decomposed": "\u00e9 e\u0301 \ufb01 \u212b \u00c5",
    "joiners": "\U0001f469\u200d\U0001f469\u200d\U0001f467\ufe0f x\u200bx\u2060x",
    "tags and variation selectors": "\U0001f3f4\U000e0067\U000e0062\U000e007f \ufe0e\U000e0100",
    "white space of all kinds": "a\u00a0\u1680\u2003\u202f\u205f\u3000b",
    "halves of a pair that make one": "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    "digits of other scripts": "\u0661\u0662 \u0967 \U0001d7d8",
    "replacement characters": "a\ufffdb",
}  # fmt: skip


@pytest.mark.parametrize("ascii", [True, False], ids=["escaped", "written"])
@pytest.mark.parametrize("what", KEPT)
def test_it_is_kept_to_the_last_character(turnmill, tmp_path, what, ascii):
    record = chat(f"{KEPT[what]} q", f"a {KEPT[what]} b")
    (tmp_path / "rows.jsonl").write_bytes(json.dumps(record, ensure_ascii=ascii).encode() + b"\n")
    (row,) = turnmill("check", tmp_path / "rows.jsonl", "--json").rows
    assert row["turns"] == [["user", f"{KEPT[what]} q"], ["final", f"a {KEPT[what]} b"]]


def test_it_is_in_what_is_prepared_to_the_last_character(prepare_rows, turnmill, tmp_path):
    records = [chat(f"{number} {text}", f"{text} a") for number, text in enumerate(KEPT.values())]
    prepare_rows("".join(json.dumps(record) + "\n" for record in records).encode(), "--filter.use", "[]")
    answer = turnmill("check", tmp_path / "out", "--json")
    assert [[text for _, text in row["turns"]] for row in answer.rows] == [
        [message["content"] for message in record["messages"]] for record in records
    ]


def test_what_is_shown_of_it_cannot_steer_a_terminal(turnmill, tmp_path):
    texts = [KEPT[what] for what in ("NUL", "escape sequences", "bidirectional overrides", "control characters")]
    record = {"messages": [{"role": text, "content": "x"} for text in texts]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(record))
    answer = turnmill("check", tmp_path / "rows.jsonl")
    steering = {character for character in answer.out + answer.err if unicodedata.category(character) in ("Cc", "Cf")}
    assert steering <= {"\n"}


def body(content: bytes) -> bytes:
    return b'{"messages": [{"role": "user", "content": "' + content + b'"}, {"role": "assistant", "content": "a"}]}\n'


REFUSED = {
    "high half alone": (b"\\ud83d", "lone-surrogate"),
    "low half alone": (b"\\ude00", "lone-surrogate"),
    "halves the wrong way": (b"\\ude00\\ud83d", "lone-surrogate"),
    "half as bytes": (b"\xed\xa0\xbd", "invalid-utf8"),
    "pair of halves as bytes": (b"\xed\xa0\xbd\xed\xb8\x80", "invalid-utf8"),
    "overlong slash": (b"\xc0\xaf", "invalid-utf8"),
    "overlong NUL": (b"\xc0\x80", "invalid-utf8"),
    "overlong of three": (b"\xe0\x80\xaf", "invalid-utf8"),
    "overlong of four": (b"\xf0\x80\x80\xaf", "invalid-utf8"),
    "over the last character": (b"\xf4\x90\x80\x80", "invalid-utf8"),
    "five bytes": (b"\xf8\x88\x80\x80\x80", "invalid-utf8"),
    "cut short": (b"\xe2\x82", "invalid-utf8"),
    "continuation alone": (b"\x80", "invalid-utf8"),
    "Latin-1": ("é".encode("latin-1"), "invalid-utf8"),
    "raw tabulator": (b"\t", "invalid-json"),
    "raw NUL": (b"\0", "invalid-json"),
    "raw escape": (b"\x1b", "invalid-json"),
    "unknown escape": (b"\\x41", "invalid-json"),
    "half an escape": (b"\\u00e", "invalid-json"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_text_is_rejected_and_the_next_row_is_read(turnmill, tmp_path, what):
    content, code = REFUSED[what]
    (tmp_path / "rows.jsonl").write_bytes(body(content) + body(b"q"))
    assert [row["code"] for row in turnmill("check", tmp_path / "rows.jsonl", "--json").rows] == [code, None]
