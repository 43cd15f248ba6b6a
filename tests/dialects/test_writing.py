"""Whatever is written is read back to the same turns and weights; what a dialect has no form for is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.contract import check
from turnmill.conversation import Checked, Conversation, Message
from turnmill.dialects import Reading, convert, dialects, writers
from turnmill.dialects.neutral import neutral_turns
from turnmill.dialects.writing import write_record
from turnmill.errors import Rejected, UnknownName

dialects.names()
NAMES = sorted(writers.keys() - {"text"})  # of chats
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
BARE, ANTHROPIC = TOOL["function"], {"name": "f", "description": "d", "input_schema": {"type": "object"}}

plain = st.characters(exclude_categories=["Cs"], exclude_characters="<[◁")
texts = st.text(plain, min_size=1, max_size=12).filter(str.strip)
weights = st.sampled_from([None, None, 0.0, 1.0])
arguments = st.dictionaries(st.text(plain, max_size=3), st.none() | st.integers() | texts | st.lists(texts), max_size=2)


def said(text: str, channel: str, weight: float | None) -> Message:
    return Message("assistant", text, channel, weight=weight)  # type: ignore[arg-type]  # one of the channels


@st.composite
def batches(draw) -> list[Message]:
    """Reasoning and text perhaps, calls, and their results."""
    weight = draw(weights)
    before = draw(st.lists(st.tuples(texts, st.sampled_from(["analysis", "commentary"])), max_size=3))
    calls = [
        Message("assistant", json.dumps(draw(arguments)), "commentary", recipient="functions.f", weight=weight)
        for _ in range(draw(st.integers(1, 3)))
    ]
    results = [
        Message("tool", draw(texts | st.just("")), "commentary", "functions.f", "assistant", draw(weights))
        for _ in calls
    ]
    return [*(said(text, channel, weight) for text, channel in before), *calls, *results]


@st.composite
def conversations(draw, agentic: bool = True) -> Checked:
    messages = [Message("system", draw(texts)) for _ in range(draw(st.integers(0, 1)))]
    for _ in range(draw(st.integers(1, 3))):
        messages.append(Message("user", draw(texts)))
        for batch in draw(st.lists(batches(), max_size=2)) if agentic else ():
            messages += batch
        weight = draw(weights) if agentic else None
        messages += [said(text, "analysis", weight) for text in draw(st.lists(texts, max_size=1))]
        messages.append(said(draw(texts), "final", weight))
    numbered = tuple(
        Message(m.role, m.text, m.channel, m.name, m.recipient, m.weight, n) for n, m in enumerate(messages)
    )
    return check(Conversation(numbered, (TOOL,), {"mode": "x"}, source_id="r1"))


def read_back(record: dict, name: str) -> Conversation:
    return convert(json.loads(json.dumps(record)), dialects.get(name), Reading(fractional=True))


def written(row: Checked, name: str) -> dict | None:
    try:
        return write_record(row, name)
    except Rejected:
        return None


def require_same(row: Conversation, back: Conversation) -> None:
    assert neutral_turns(back) == neutral_turns(row)
    assert [message.weight for message in back.messages] == [message.weight for message in row.messages]
    assert (back.source_id, back.template_kwargs, len(back.tools)) == (row.source_id, row.template_kwargs, 1)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(row=conversations())
def test_what_is_written_reads_back_as_the_same_row(name, row):
    record = written(row, name)
    if record is not None:
        require_same(row, check(read_back(record, name)))
    else:
        assert name in ("alpaca", "sharegpt")


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(row=conversations(agentic=False))
def test_texts_are_said_in_every_dialect(name, row):
    edged = any(message.text.strip("\r\n") != message.text for message in row.messages)
    if name in ("alpaca", "sharegpt") and edged:
        return  # a think block has no newlines at its edges
    require_same(row, check(read_back(write_record(row, name), name)))


def row(*messages: Message, tools=()) -> Checked:
    return check(Conversation((Message("user", "q", recorded=0), *messages), tools))


CALL = Message("assistant", '{"n": 1}', "commentary", recipient="functions.f", recorded=1)
RESULT = Message("tool", "x", "commentary", "functions.f", "assistant", recorded=2)
ANSWER = said("a", "final", None)


@pytest.mark.parametrize(
    ("messages", "name", "at"),
    [
        ((CALL, RESULT, ANSWER), "alpaca", None),
        ((CALL,), "alpaca", 1),
        ((said("<think>x</think>a", "final", None),), "openai", None),
        ((said("c", "commentary", None), ANSWER), "openai", None),
        ((said("\nr", "analysis", None), ANSWER), "sharegpt", None),
        ((said("a", "final", 0.0),), "alpaca", None),
        ((Message("assistant", "a", "final", name="bot", recorded=1),), "anthropic", 1),
        ((Message("assistant", "a", "final", name="bot", recorded=1),), "alpaca", 1),
    ],
)
def test_what_a_dialect_has_no_form_for_is_said(messages, name, at):
    with pytest.raises(Rejected) as caught:
        write_record(row(*messages, tools=(TOOL,)), name)
    assert (caught.value.code, caught.value.at) == ("dialect-cannot-say", at)


@pytest.mark.parametrize("name", NAMES)
def test_developers_and_names_are_said_where_there_is_a_form_for_them(name):
    row = check(Conversation((Message("developer", "d"), Message("user", "q", name="ann"), ANSWER)))
    assert (written(row, name) is not None) == (name in ("openai", "sharegpt", "harmony"))


@pytest.mark.parametrize("tool", [TOOL, BARE, ANTHROPIC])
@pytest.mark.parametrize("name", NAMES)
def test_definitions_are_written_in_the_dialects_form(tool, name):
    written = write_record(row(ANSWER, tools=(tool,)), name)["tools"]
    form = json.loads(written)[0] if isinstance(written, str) else written[0]
    assert form == (ANTHROPIC if name == "anthropic" else TOOL if tool is ANTHROPIC else tool)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("openai", {"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"n": 1}'}}]},
            {"role": "tool", "content": "x", "tool_call_id": "call_1", "name": "f"},
            {"role": "assistant", "content": "a"}], "tools": [TOOL]}),
        ("sharegpt", {"conversations": [
            {"from": "human", "value": "q"},
            {"from": "function_call", "value": '{"name": "f", "arguments": {"n": 1}}'},
            {"from": "observation", "value": "x"},
            {"from": "gpt", "value": "a"}], "tools": json.dumps([TOOL])}),
        ("anthropic", {"tools": [ANTHROPIC], "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"n": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]},
            {"role": "assistant", "content": "a"}]}),
        ("harmony", {"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "channel": "commentary", "recipient": "functions.f", "content_type": "json",
             "content": '{"n": 1}'},
            {"role": "tool", "name": "functions.f", "channel": "commentary", "recipient": "assistant", "content": "x"},
            {"role": "assistant", "channel": "final", "content": "a"}], "tools": [TOOL]}),
    ],
)  # fmt: skip
def test_a_call_in_each_dialect(name, record):
    assert write_record(row(CALL, RESULT, ANSWER, tools=(TOOL,)), name) == record


def test_alpaca_keeps_earlier_exchanges_as_history():
    messages = (Message("system", "s"), Message("user", "p"), ANSWER, Message("user", "q"), ANSWER)
    assert write_record(check(Conversation(messages)), "alpaca") == {
        "instruction": "q", "input": "", "output": "a", "system": "s", "history": [["p", "a"]],
    }  # fmt: skip


def test_a_dialect_that_is_only_read_is_named():
    with pytest.raises(UnknownName, match="Known: alpaca, anthropic, harmony, openai, sharegpt"):
        write_record(row(ANSWER), "prompt-response")
