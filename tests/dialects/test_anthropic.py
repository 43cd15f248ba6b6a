from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.contract import check
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected

ASKED, ANSWERED = ["user", "q"], ["final", "a"]
TOOL = {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}}
CALL, RESULT = ["call", "f", {"n": 1}], ["result", "f", "x"]


def text(said: str) -> dict:
    return {"type": "text", "text": said}


def thinking(said: str) -> dict:
    return {"type": "thinking", "thinking": said, "signature": "c2ln"}


def use(identity: str = "t1", name: str = "f", **arguments) -> dict:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments or {"n": 1}}


def result(content="x", identity: str = "t1", **more) -> dict:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def user(*blocks) -> dict:
    return {"role": "user", "content": list(blocks) or "q"}


def assistant(*blocks, **more) -> dict:
    return {"role": "assistant", "content": list(blocks) or "a", **more}


def read(*messages, reading: Reading | None = None, **columns):
    return convert({"messages": list(messages), **columns}, dialects.get("anthropic"), reading or Reading())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (assistant(), [ANSWERED]),
        (assistant(text("a")), [ANSWERED]),
        (assistant(text("one "), text("two")), [["final", "one two"]]),
        (assistant(thinking("r"), text("a")), [["analysis", "r"], ANSWERED]),
        (assistant(text("<think>r</think>a")), [["analysis", "r"], ANSWERED]),
        (assistant(thinking(" "), text("a")), [ANSWERED]),
        (assistant(use()), [CALL]),
        (assistant(text("look"), use()), [["commentary", "look"], CALL]),
        (assistant(thinking("r"), text("look"), use()), [["analysis", "r"], ["commentary", "look"], CALL]),
        (assistant(text("look"), thinking("r"), use()), [["commentary", "look"], ["analysis", "r"], CALL]),
        (assistant(use("t1"), use("t2")), [CALL, CALL]),
        (assistant(use(), text("look")), [["commentary", "look"], CALL]),
        ({"role": "assistant", "content": []}, [["final", ""]]),
    ],
)
def test_an_assistants_blocks_are_reasoning_texts_and_calls(answer, said):
    calls = [block for block in answer["content"] if isinstance(block, dict) and block["type"] == "tool_use"]
    results = [user(*(result(identity=call["id"]) for call in calls))] if calls else []
    assert neutral_turns(read(user(), answer, *results)) == [ASKED, *said, *[RESULT] * len(calls)]


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([result()], [RESULT]),
        ([result([text("x"), text("y")])], [["result", "f", "xy"]]),
        ([result(None)], [["result", "f", ""]]),
        ([result(is_error=True)], [RESULT]),
        ([result(), text("and now?")], [RESULT, ["user", "and now?"]]),
    ],
)
def test_a_users_results_answer_calls(blocks, said):
    turns = neutral_turns(check(read(user(), assistant(use()), user(*blocks), assistant(), tools=[TOOL])))
    assert turns == [ASKED, CALL, *said, ANSWERED]


def test_results_come_in_call_order_whatever_order_they_were_sent_in():
    calls = assistant(use("t1", n=1), use("t2", n=2))
    rows = read(user(), calls, user(result("second", "t2"), result("first", "t1")), assistant(), tools=[TOOL])
    assert neutral_turns(check(rows))[3:5] == [["result", "f", "first"], ["result", "f", "second"]]


@pytest.mark.parametrize("system", ["s", [text("s")], [text("s"), {**text(""), "cache_control": {}}]])
def test_the_system_is_text_or_blocks(system):
    assert neutral_turns(read(user(), assistant(), system=system))[0] == ["system", "s"]


def test_definitions_stay_as_recorded_and_meet_the_contract():
    assert check(read(user(), assistant(use()), tools=[TOOL])).tools == (TOOL,)


@pytest.mark.parametrize(
    ("messages", "code", "at"),
    [
        ([user(), assistant({"type": "redacted_thinking", "data": "x"}, text("a"))], "reasoning-redacted", 1),
        ([user({"type": "image", "source": {}}), assistant()], "non-text-content", 0),
        ([user(), assistant({"type": "server_tool_use"})], "unknown-content-part", 1),
        ([user(), assistant({"type": ["text"]})], "unknown-content-part", 1),
        ([user(), assistant("text")], "non-string-content", 1),
        ([user(), assistant({"type": "text", "text": 3})], "non-string-content", 1),
        ([user(), {"role": "assistant", "content": {"text": "a"}}], "non-string-content", 1),
        ([user(use()), assistant()], "calls-outside-assistant", 0),
        ([user(), assistant(result())], "calls-outside-assistant", 1),
        ([user(), assistant({"type": "tool_use", "id": "t", "input": {}})], "tool-call-malformed", 1),
        ([user(), assistant({**use(), "input": [1]})], "tool-arguments-not-object", 1),
        ([user(), assistant(use()), user(result(identity="t9"))], "tool-reply-unmatched", 2),
        ([user(), assistant(use()), user(result([{"type": "image"}]))], "non-text-content", 2),
        ([user(), assistant(use()), user(result([{"type": "reasoning", "text": "r"}]))], "unknown-content-part", 2),
        ([user(), {"role": "tool", "content": "x"}], "unknown-speaker", 1),
        ([user(), {"role": "function_call", "content": "x"}], "unknown-speaker", 1),
        ([user(), "a"], "message-not-object", 1),
    ],
)
def test_faults(messages, code, at):
    with pytest.raises(Rejected) as caught:
        read(*messages)
    assert (caught.value.code, caught.value.at) == (code, at)


def test_what_is_left_of_a_block_is_named():
    reading = Reading()
    read(user(), assistant({**text("a"), "citations": [{"url": "u"}], "cache_control": {"ttl": 5}}), reading=reading)
    assert set(reading.counts) == {"read/undeclared-key/citations"}


def test_a_message_and_its_parts_share_a_weight():
    turns = read(user(), assistant(thinking("r"), use(), weight=0), user(result()), assistant())
    assert [message.weight for message in turns.messages] == [None, 0.0, 0.0, None, None]


def test_train_turns_count_messages_however_many_parts_they_have():
    blocks = assistant(text("look"), thinking("r"), use())
    turns = read(user(), blocks, user(result()), assistant(), train_turns=[1])
    assert [message.weight for message in turns.messages] == [None, 0.0, 0.0, 0.0, None, None]


def test_roles_admit_speakers():
    turns = read({"role": "Human", "content": "q"}, assistant(), reading=Reading(Mapping(roles={"Human": "user"})))
    assert neutral_turns(turns) == [ASKED, ANSWERED]


@given(st.lists(st.tuples(st.text(), st.text(min_size=1)), min_size=1, max_size=4))
def test_no_character_of_plain_text_changes(pairs):
    messages = [message for q, a in pairs for message in (user(text(q)), assistant(text(a)))]
    assert [message.text for message in read(*messages).messages] == [said for pair in pairs for said in pair]
