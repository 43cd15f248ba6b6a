from __future__ import annotations

import pytest

from turnmill.conversation import Conversation, Message
from turnmill.dialects.neutral import neutral_turns


@pytest.mark.parametrize(
    ("message", "turn"),
    [
        (Message("system", "s"), ["system", "s"]),
        (Message("developer", "d"), ["developer", "d"]),
        (Message("user", "u", name="ann"), ["user", "u"]),
        (Message("assistant", "r", "analysis"), ["analysis", "r"]),
        (Message("assistant", "c", "commentary"), ["commentary", "c"]),
        (Message("assistant", "a", "final"), ["final", "a"]),
        (Message("assistant", '{"b": 1}', "commentary", recipient="functions.f"), ["call", "f", {"b": 1}]),
        (Message("tool", "x", "commentary", "functions.f", "assistant"), ["result", "f", "x"]),
    ],
)
def test_every_kind_of_message(message, turn):
    assert neutral_turns(Conversation((message,))) == [turn]
