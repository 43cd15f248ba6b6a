"""Ids of checked conversations: the stored test vector, and what they do and do not depend on."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.contract import check
from turnmill.conversation import Conversation, Message, canonical_bytes
from turnmill.dialects import Reading, convert, dialects

TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
RECORD = {
    "messages": [
        {"role": "user", "content": "Oslo?"},
        {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1, "b": {"c": 2, "d": 3}}}}],
        },
        {"role": "tool", "content": "5C"},
        {"role": "assistant", "content": "Cold.", "reasoning": "5 is cold"},
    ],
    "tools": [TOOL],
    "chat_template_kwargs": {"style": {"x": 1, "y": 2}},
}


def checked(record: dict) -> Conversation:
    return check(convert(record, dialects.get("openai"), Reading()))


def shuffled(value, draw):
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw(st.permutations(sorted(value)))}
    return [shuffled(item, draw) for item in value] if isinstance(value, list) else value


def test_vector():
    conversation = check(Conversation((Message("user", "hi"), Message("assistant", "yo", "final"))))
    assert canonical_bytes(conversation).decode() == (
        '{"chat_template_kwargs":{"enable_thinking":false},"messages":[{"content":[{"text":"hi","type":"text"}],'
        '"name":null,"role":"user"},{"channel":"final","content":[{"text":"yo","type":"text"}],"name":null,'
        '"role":"assistant"}]}'
    )
    assert conversation.id == "1b2ade8f3320cc6ac9df66ef1b1d2c8c"


@given(st.data())
def test_key_order_changes_nothing(data):
    assert checked(shuffled(RECORD, data.draw)).id == checked(RECORD).id


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("tools", 0, "function", "description"), "another"),
        (("chat_template_kwargs", "style", "x"), 2),
        (("messages", 3, "content"), "Cold. "),
        (("messages", 1, "tool_calls", 0, "function", "arguments", "a"), 1.0),
    ],
)
def test_what_the_model_sees_changes_the_id(path, value):
    record = json.loads(json.dumps(RECORD))
    target = record
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    assert checked(record).id != checked(RECORD).id


def test_provenance_and_weights_do_not():
    conversation = checked(RECORD)
    weighted = tuple(msgspec.structs.replace(message, weight=0.0) for message in conversation.messages)
    other = msgspec.structs.replace(conversation, messages=weighted, source="other", source_id="7", meta={"row": 3})
    assert other.id == conversation.id
    assert other.loss_id({}) != conversation.loss_id({})
