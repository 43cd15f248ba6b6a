"""Plain chats read at once are what reading them field by field gives, counts included."""

import random
from collections import Counter

import pytest

from turnmill.dialects import Reading, convert, dialects, plain, row
from turnmill.errors import Rejected

TEXTS = (
    "a",
    "",
    " ",
    "b\0",
    "<think>r</think>x",
    "x <think> y",
    "<tool_call>{}</tool_call>",
    "1 < 2",
    "</think>",
    "\0",
)
ROLES = {
    "openai": ("user", "assistant", "system", "developer", "User", "tool", "critic", None),
    "sharegpt": ("human", "gpt", "system", "user", "assistant", "function_call", "observation", 7),
}
KEYS = {"openai": ("role", "content"), "sharegpt": ("from", "value")}


def read(name, record):
    counts = Counter()
    try:
        return convert(record, dialects.get(name), Reading(counts=counts)), counts
    except Rejected as fault:
        return (fault.code, fault.at), counts


def message(draw, name):
    role, content = KEYS[name] if draw.random() < 0.9 else KEYS["openai"]
    made = {role: draw.choice(ROLES[name][: draw.choice([2, 8])]), content: draw.choice(TEXTS)}
    return made if draw.random() < 0.95 else made | {"name": "ann"}


@pytest.mark.parametrize("name", ROLES)
def test_a_plain_chat_is_read_as_any_other(name, monkeypatch):
    draw = random.Random(0)
    records = [{"messages": [message(draw, name) for _ in range(draw.randint(1, 4))]} for _ in range(3000)]
    at_once = [read(name, record) for record in records]
    monkeypatch.setattr(row, "plain_messages", lambda *_: None)
    assert at_once == [read(name, record) for record in records]


@pytest.mark.parametrize(("text", "is_plain"), [("a < b", True), ("<think>a</think>b", False), ("\0", False)])
def test_what_is_counted_or_taken_out_is_not_plain(text, is_plain):
    from turnmill.dialects.openai import MANNER

    found = plain.plain_messages([{"role": "assistant", "content": text}], MANNER, Reading())
    assert (found is not None) is is_plain
