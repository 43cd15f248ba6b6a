"""Inputs that nobody meant: bytes, JSON and conversations, drawn from a seed and damaged."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zstandard

_FILE = Path(__file__).parents[1] / "layouts" / "layouts.jsonl"
LAYOUTS = [json.loads(line)["record"] for line in _FILE.read_text("utf-8").splitlines()]
TRAPS = [
    "\ud800",
    "\udfff",
    "\ufeff",
    "\u2028",
    "\u2029",
    "\x85",
    "\0",
    "\x1b",
    "\u202e",
    "\u2066",
    "\u200d",
    "\ufffe",
    "\U0010ffff",
    "\U0001f600",
    "e" + "\u0301" * 50,
    "\r",
    "\r\n",
    "\n",
    "\t",
    "\u00a0",
    "\u3000",
    "İ",
    "ß",
    "\\",
    '"',
]
TEXTS = [
    "",
    " ",
    "x",
    "user",
    "assistant",
    "tool",
    "system",
    "gpt",
    "human",
    "<think>",
    "</think>",
    "<think>a</think>b",
    "{}",
    "[]",
    "null",
    '{"name": "f", "arguments": {}}',
    '{"a": 1, "a": 2}',
    "<|start|>assistant<|message|>x<|end|>",
    "<|channel|>",
    "<tool_call>{}</tool_call>",
    "functions.f",
    "1e999",
    "NaN",
    "data:image/png;base64,AAAA",
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    1e308,
    10**30,
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": ""},
    {"type": "text"},
    {"role": "user"},
    {"role": "assistant", "content": "x"},
    {"from": "gpt", "value": "x"},
    {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    {"type": "function", "function": {"name": "f"}},
    {"type": "tool_result", "tool_use_id": "t"},
    {"type": "image"},
]
KEYS = sorted(
    {key for record in LAYOUTS for key in record}
    | {
        "role",
        "content",
        "from",
        "value",
        "tools",
        "weight",
        "loss",
        "train_turns",
        "tool_calls",
        "tool_call_id",
        "name",
        "channel",
        "recipient",
        "reasoning",
        "id",
        "verbatim",
        "recorded",
        "weights",
        "chat_template_kwargs",
        "function_call",
        "type",
        "text",
        "input",
        "messages",
    }
)
MARKS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"\\",
    b"\\u",
    b"\\ud83d",
    b"\n",
    b"\r\n",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf5\x80\x80\x80",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-",
    b"9" * 5000,
    b"[" * 300,
    b'{"a":' * 300,
    b"\xe2\x80\xa8",
    b" " * 40,
    b"\x1f\x8b",
    b"PAR1",
    b"\x28\xb5\x2f\xfd",
]

Draw = random.Random


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def text(draw: Draw) -> str:
    pieces = draw.choices(TEXTS + TRAPS, k=draw.randint(0, 4))
    return draw.choice(["", " "]).join(pieces)


def oddity(draw: Draw) -> Any:
    return text(draw) if draw.random() < 0.5 else copy.deepcopy(draw.choice(ODD))


def damaged(record: Any, draw: Draw) -> Any:
    """A copy of a record with up to four things changed inside: put in, taken out, swapped, renamed, nested."""
    record = copy.deepcopy(record)
    for _ in range(draw.randint(0, 4)):
        found = list(places(record))
        if not found:
            break
        container, key = draw.choice(found)
        draw.choice(CHANGES)(container, key, found, draw)
    return record


def _take_out(container: Any, key: Any, found: list[Any], draw: Draw) -> None:
    del container[key]


def _replace(container: Any, key: Any, found: list[Any], draw: Draw) -> None:
    container[key] = oddity(draw)


def _replace_by_neighbour(container: Any, key: Any, found: list[Any], draw: Draw) -> None:
    other, at = draw.choice(found)
    container[key] = copy.deepcopy(other[at])


def _put_in(container: Any, key: Any, found: list[Any], draw: Draw) -> None:
    if isinstance(container, list):
        other, at = draw.choice(found)
        container.insert(key, copy.deepcopy(other[at]))
    else:
        container[draw.choice(KEYS)] = oddity(draw)


def _rename(container: Any, key: Any, found: list[Any], draw: Draw) -> None:
    if isinstance(container, dict):
        container[draw.choice([*KEYS, *TEXTS])] = container.pop(key)


def _as_text(container: Any, key: Any, found: list[Any], draw: Draw) -> None:
    container[key] = json.dumps(container[key])


def _write_into(container: Any, key: Any, found: list[Any], draw: Draw) -> None:
    if isinstance(container[key], str):
        at = draw.randint(0, len(container[key]))
        container[key] = container[key][:at] + text(draw) + container[key][at:]


CHANGES: list[Callable[..., None]] = [
    _take_out,
    _replace,
    _replace_by_neighbour,
    _put_in,
    _rename,
    _as_text,
    _write_into,
    _write_into,
]


def conversation(draw: Draw) -> dict[str, Any]:
    """A record of random turns, in the words of a random dialect."""
    who, says, key = draw.choice([("role", "content", "messages"), ("from", "value", "conversations")])
    speakers = ["user", "assistant"] * 3 + [
        "system",
        "tool",
        "developer",
        "human",
        "gpt",
        "function_call",
        "observation",
    ]
    turns = []
    for number in range(draw.randint(0, 7)):
        speaker = ("user", "assistant")[number % 2] if draw.random() < 0.7 else draw.choice(speakers)
        turn = {who: speaker, says: text(draw) or "x"}
        if draw.random() < 0.2:
            turn[draw.choice(KEYS)] = oddity(draw)
        if draw.random() < 0.1:
            turn["tool_calls"] = [{"id": "1", "function": {"name": "f", "arguments": oddity(draw)}}]
        turns.append(turn)
    return {key: turns} | ({draw.choice(KEYS): oddity(draw)} if draw.random() < 0.3 else {})


def json_bytes(value: Any, draw: Draw) -> bytes:
    written = json.dumps(value, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, None, None, 1]))
    return written.encode("utf-8", "surrogatepass")


def broken_bytes(draw: Draw) -> bytes:
    """The bytes of a file: noise, or some records' with bytes changed, and perhaps packed and then changed again."""
    if draw.random() < 0.1:
        content = draw.randbytes(draw.randint(0, 200))
    else:
        records = [json_bytes(draw.choice(LAYOUTS), draw) for _ in range(draw.randint(1, 3))]
        content = draw.choice([b"\n", b"\n", b"", b"\r\n", b",", b"\n\n"]).join(records)
        content = b"[" + content + b"]" if draw.random() < 0.2 else content
    for _ in range(draw.randint(0, 5)):
        content = changed_bytes(content, draw)
    if draw.random() < 0.15:
        content = draw.choice([gzip.compress, zstandard.compress])(content)
        content = changed_bytes(content, draw) if draw.random() < 0.7 else content
    return content


def changed_bytes(content: bytes, draw: Draw) -> bytes:
    at, length = draw.randint(0, len(content)), draw.randint(0, 8)
    match draw.randint(0, 4):
        case 0:
            return content[:at] + draw.choice(MARKS) + content[at:]
        case 1:
            return content[:at] + content[at + length :]
        case 2:
            return content[:at] + draw.randbytes(length) + content[at + length :]
        case 3:
            return content[:at]
        case _:
            other = draw.randint(0, len(content))
            return content[:at] + content[other : other + 60] + content[at:]


def case(seed: int, number: int) -> bytes:
    """The file of one case: the same for the same seed and number on any machine."""
    draw = random.Random(f"{seed}/{number}")
    kind = number % 4
    if kind == 0:
        return broken_bytes(draw)
    if kind == 1:
        return json_bytes(damaged(conversation(draw), draw) if draw.random() < 0.5 else conversation(draw), draw)
    return json_bytes(damaged(draw.choice(LAYOUTS), draw), draw)
