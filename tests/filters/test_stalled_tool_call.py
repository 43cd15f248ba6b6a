from __future__ import annotations

import pytest

from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.filters import filters
from turnmill.options import Filter

TOOLS = tuple({"name": name, "parameters": {}} for name in "fg")
USER, FINAL = Message("user", "u"), Message("assistant", "a", "final")
ANALYSIS = Message("assistant", "r", "analysis")


def call(arguments: str = '{"a": 1, "b": 2}', name: str = "f") -> Message:
    return Message("assistant", arguments, "commentary", recipient=f"functions.{name}")


def reply(text: str = "same", name: str = "f") -> Message:
    return Message("tool", text, "commentary", name=f"functions.{name}", recipient="assistant")


PAIR = [call(), reply()]


@pytest.mark.parametrize(
    ("messages", "stalls"),
    [
        ([USER, *PAIR, *PAIR, call()], True),
        ([USER, *PAIR, *PAIR, *PAIR, FINAL], True),
        ([USER, *PAIR, *PAIR, call('{"b": 2, "a": 1}'), reply("new"), FINAL], True),
        ([USER, ANALYSIS, *PAIR, ANALYSIS, *PAIR, ANALYSIS, *PAIR, FINAL], True),
        ([USER, call("{}", "g"), reply("x", "g"), *PAIR, *PAIR, *PAIR, FINAL], True),
        ([USER, FINAL, USER, *PAIR, *PAIR, *PAIR, FINAL], True),
        ([USER, *PAIR, *PAIR, FINAL], False),
        ([USER, *PAIR, *PAIR, call('{"a": 1.0, "b": 2}')], False),
        ([USER, *PAIR, call(), reply("new"), *PAIR, FINAL], False),
        ([USER, *PAIR, *PAIR, call(name="g"), reply(name="g"), *PAIR, FINAL], False),
        ([USER, *PAIR, *PAIR, FINAL, USER, *PAIR, FINAL], False),
        ([USER, call(), call(), call(), reply(), reply(), reply(), FINAL], False),
        ([USER, *([call(), call(), reply(), reply()] * 3), FINAL], False),
    ],
)
def test_flags_the_third_fruitless_repeat(messages, stalls):
    checked = check(Conversation(tuple(messages), TOOLS))
    refused = filters.get("stalled-tool-call")(checked, Filter())
    assert (refused.code if refused else None) == ("stalled-tool-call" if stalls else None)


def test_names_the_third_call():
    messages = tuple(
        Message(m.role, m.text, m.channel, m.name, m.recipient, recorded=n)
        for n, m in enumerate([USER, *PAIR, *PAIR, call()])
    )
    assert filters.get("stalled-tool-call")(check(Conversation(messages, TOOLS)), Filter()).at == 5
