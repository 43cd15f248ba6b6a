from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.contract import check
from turnmill.conversation import NOT_RECORDED
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected, UnknownName

TOOLS = [{"name": "f", "description": "d", "parameters": {}}]
ASKED, ANSWERED = ["user", "q"], ["final", "a"]


def turn(speaker: str, value) -> dict:
    return {"from": speaker, "value": value}


HUMAN, GPT = turn("human", "q"), turn("gpt", "a")


def read(*conversations, reading: Reading | None = None, **columns):
    record = {"conversations": list(conversations), **columns}
    return convert(record, dialects.get("sharegpt"), reading or Reading())


@pytest.mark.parametrize(
    "speakers", [("human", "gpt"), ("user", "assistant"), ("Human", "GPT"), ("USER", "ChatGPT"), ("human", "assistant")]
)
@pytest.mark.parametrize("keys", [("from", "value"), ("role", "content")])
def test_speakers_and_keys_have_twins(speakers, keys):
    turns = [dict(zip(keys, pair, strict=True)) for pair in zip(speakers, "qa", strict=True)]
    assert neutral_turns(read(*turns)) == [ASKED, ANSWERED]


def test_the_list_may_stand_under_messages():
    conversation = convert({"messages": [HUMAN, GPT]}, dialects.get("sharegpt"), Reading())
    assert neutral_turns(conversation) == [ASKED, ANSWERED]


CALL = {"name": "f", "arguments": {"n": 1}}


@pytest.mark.parametrize(
    ("value", "calls"),
    [
        (json.dumps(CALL), 1),
        (CALL, 1),
        (json.dumps([CALL, CALL]), 2),
        ([CALL, CALL], 2),
        (json.dumps({"name": "f", "arguments": '{"n": 1}'}), 1),
    ],
)
def test_a_function_call_turn_is_one_call_or_several(value, calls):
    results = [turn("observation", "x")] * calls
    conversation = check(read(HUMAN, turn("function_call", value), *results, GPT, tools=json.dumps(TOOLS)))
    expected = [["call", "f", {"n": 1}]] * calls + [["result", "f", "x"]] * calls
    assert neutral_turns(conversation) == [ASKED, *expected, ANSWERED]


def test_text_before_a_function_call_is_commentary_of_the_same_turn():
    turns = [HUMAN, turn("gpt", "look"), turn("function_call", CALL), turn("observation", "x")]
    conversation = check(read(*turns, *turns[2:], GPT, tools=TOOLS))
    kinds = [said[0] for said in neutral_turns(conversation)]
    assert kinds == ["user", "commentary", "call", "result", "call", "result", "final"]


def test_reasoning_may_lead_a_function_call():
    value = f"<think>hm</think>\n{json.dumps(CALL)}"
    conversation = read(HUMAN, turn("function_call", value))
    assert neutral_turns(conversation)[1:] == [["analysis", "hm"], ["call", "f", {"n": 1}]]
    assert conversation.verbatim == {1: value}


@pytest.mark.parametrize(
    ("system", "first", "expected", "recorded"),
    [
        ("s", [], [["system", "s"]], [NOT_RECORDED]),
        (" ", [], [], []),
        (None, [], [], []),
        ("s", [turn("system", "s")], [["system", "s"]], [0]),
        ("s", [turn("system", "t")], [["system", "s"], ["system", "t"]], [NOT_RECORDED, 0]),
    ],
)
def test_a_system_column_comes_first(system, first, expected, recorded):
    conversation = read(*first, HUMAN, GPT, system=system)
    assert neutral_turns(conversation)[:-2] == expected
    assert [message.recorded for message in conversation.messages][:-2] == recorded


@pytest.mark.parametrize(
    ("turns", "code", "at"),
    [
        ([HUMAN, turn("bing", "a")], "unknown-speaker", 1),
        ([HUMAN, {"value": "a"}], "no-speaker", 1),
        ([HUMAN, {"from": "gpt", "role": "user", "value": "a"}], "twin-keys-disagree", 1),
        ([HUMAN, {"from": "gpt", "value": "a", "content": "b"}], "twin-keys-disagree", 1),
        ([HUMAN, turn("function_call", "f(1)")], "tool-call-not-json", 1),
        ([HUMAN, turn("function_call", "[]")], "tool-call-malformed", 1),
        ([HUMAN, turn("function_call", '{"name": "f"}')], "tool-arguments-not-object", 1),
        ([HUMAN, turn("observation", "x"), GPT], "tool-reply-unmatched", 1),
        ([HUMAN, GPT, turn("observation", "x")], "tool-reply-unmatched", 2),
        ([turn("human", {"text": "q"}), GPT], "non-string-content", 0),
    ],
)
def test_faults(turns, code, at):
    with pytest.raises(Rejected) as caught:
        read(*turns)
    assert (caught.value.code, caught.value.at) == (code, at)


def test_roles_admit_speakers_and_calls():
    reading = Reading(Mapping(roles={"bing": "assistant", "tool_call": "function_call", "output": "observation"}))
    turns = [HUMAN, turn("tool_call", CALL), turn("output", "x"), turn("bing", "a")]
    assert [said[0] for said in neutral_turns(read(*turns, reading=reading))] == ["user", "call", "result", "final"]


@pytest.mark.parametrize(
    "mapping", [Mapping(roles={"bing": "asistant"}), Mapping({"mesages": "x"}), Mapping(tags={"rolle": "x"})]
)
def test_a_mapping_to_nothing_is_the_users_fault_not_the_rows(mapping):
    with pytest.raises(UnknownName, match="Did you mean"):
        read(HUMAN, turn("bing", "a"), reading=Reading(mapping))


def test_tags_that_do_not_fit_the_file_reject_its_rows():
    with pytest.raises(Rejected) as caught:
        read(HUMAN, GPT, reading=Reading(Mapping(tags={"role": "speaker"})))
    assert caught.value.code == "no-speaker"


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4))
def test_no_character_of_plain_text_changes(pairs):
    turns = [turn(who, text) for pair in pairs for who, text in zip(("human", "gpt"), pair, strict=True)]
    assert [message.text for message in read(*turns).messages] == [text for pair in pairs for text in pair]
