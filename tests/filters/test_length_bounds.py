from __future__ import annotations

import pytest

from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.filters import filters
from turnmill.options import Filter, LengthBounds

ROW = check(
    Conversation(
        (
            Message("system", "sys"),
            Message("user", "one?"),
            Message("assistant", "hm", "analysis", recorded=2),
            Message("assistant", "yes", "final", recorded=2),
            Message("user", "two?"),
            Message("assistant", "certainly", "final", recorded=4),
        )
    )
)
"""Two assistant turns, 25 characters, answers of 3 and 9."""


@pytest.mark.parametrize(
    ("bounds", "at"),
    [
        ({"min_turns": 3}, None),
        ({"max_turns": 1}, None),
        ({"min_characters": 26}, None),
        ({"max_characters": 24}, None),
        ({"min_answer_characters": 4}, 2),
        ({"max_answer_characters": 8}, 4),
        ({"min_turns": 2, "max_answer_characters": 2}, 2),
        ({"max_turns": 2, "max_characters": 1}, None),
    ],
)
def test_a_row_outside_its_bounds_leaves(bounds, at):
    fault = filters.get("length-bounds")(ROW, Filter(length_bounds=LengthBounds(**bounds)))
    assert (fault.code, fault.at) == ("length-bounds", at)
    assert "expected at" in fault.message


@pytest.mark.parametrize(
    "bounds",
    [
        {}, {"min_turns": 2}, {"max_turns": 2}, {"min_characters": 25}, {"max_characters": 25},
        {"min_answer_characters": 3}, {"max_answer_characters": 9}, {"min_turns": 0, "max_turns": 5},
    ],
)  # fmt: skip
def test_a_row_within_its_bounds_stays(bounds):
    assert filters.get("length-bounds")(ROW, Filter(length_bounds=LengthBounds(**bounds))) is None
