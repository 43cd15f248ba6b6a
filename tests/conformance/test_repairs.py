"""What every repair promises, over the whole registry: sound rows stay as they are, twice mended is once mended."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.contract import check
from turnmill.conversation import Conversation
from turnmill.dialects import Reading, convert, dialects
from turnmill.errors import Rejected
from turnmill.repairs import Mending, RecordRepair, repairs
from turnmill.repairs.mender import Mender

NAMES = repairs.names()

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"city": "Oslo"}}}]}
SOUND = {
    "messages": [
        {"role": "system", "content": ""},
        {"role": "user", "content": "Weather?"},
        CALL,
        {"role": "tool", "content": "5C\n"},
        {"role": "assistant", "content": "<think>\nNow say it.\n</think>\n\nFive.", "weight": 1},
    ],
    "tools": TOOLS,
}

TEXTS = st.sampled_from(
    ["", " ", "a", "b\r\n", " c ", "r\n</think>\n\na", "<think>r</think>a", "a@b.com", "\ud83d", 4, True, None,
     '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "<tool_response>x</tool_response>"]
)  # fmt: skip
ROLES = st.sampled_from(["user", "assistant", "assistant", "tool", "system"])
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": ROLES, "content": TEXTS}, optional={"weight": st.sampled_from([0, 1])})
    | st.just(CALL),
    max_size=6,
)


def mended(names: list[str], record: dict[str, Any]) -> tuple[Conversation, list[str]] | None:
    """The record behind repairs; None where no dialect can read it."""
    touched: list[str] = []
    mender = Mender(names, Mending())
    try:
        conversation = convert(mender.record(record, touched), dialects.get("openai"), Reading())
    except Rejected:
        return None
    return mender.conversation(conversation, touched), touched


@pytest.mark.parametrize("name", NAMES)
def test_a_sound_row_stays_as_it_is(name):
    before = copy.deepcopy(SOUND)
    found = mended([name], SOUND)
    assert found is not None
    assert found[1] == []
    assert check(found[0]).id == check(convert(before, dialects.get("openai"), Reading())).id
    assert before == SOUND


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=80)
@given(messages=MESSAGES)
def test_mending_twice_is_mending_once(name, messages):
    record = {"messages": messages, "tools": TOOLS}
    before = copy.deepcopy(record)
    once, twice = mended([name], record), mended([name, name], record)
    assert record == before
    assert (once and once[0]) == (twice and twice[0])
    assert once is None or set(once[1]) <= {name}


@settings(max_examples=80)
@given(messages=MESSAGES, names=st.permutations(NAMES))
def test_all_together_give_a_row_that_check_can_judge(messages, names):
    found = mended(list(names), {"messages": messages, "tools": TOOLS})
    if found is not None:
        with suppress(Rejected):
            assert len(check(found[0]).id) == 32


@pytest.mark.parametrize("name", NAMES)
def test_says_what_it_does_in_one_line(name):
    assert 20 < len(repairs.summary(name)) <= 120


def test_both_kinds_are_known():
    kinds = {name: isinstance(repairs.get(name), RecordRepair) for name in NAMES}
    assert {name for name, of_record in kinds.items() if of_record} == {
        "coerce-scalars", "parse-inline-calls", "replace-surrogates",
    }  # fmt: skip
