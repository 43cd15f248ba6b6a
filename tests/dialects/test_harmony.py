from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.contract import check
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected

ASKED, ANSWERED = ["user", "q"], ["final", "a"]
TOOL = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
USER = {"role": "user", "content": "q"}
THOUGHT = {"role": "assistant", "channel": "analysis", "content": "r"}
FINAL = {"role": "assistant", "channel": "final", "content": "a"}
CALL = {"role": "assistant", "channel": "commentary", "recipient": "functions.f", "content": '{"n":1}'}
RESULT = {"role": "tool", "name": "functions.f", "channel": "commentary", "recipient": "assistant", "content": "x"}
WHOLE = [ASKED, ["analysis", "r"], ["call", "f", {"n": 1}], ["result", "f", "x"], ANSWERED]


def read(*messages, reading: Reading | None = None, **columns):
    return convert({"messages": list(messages), **columns}, dialects.get("harmony"), reading or Reading())


def wire(text: str, column: str = "text"):
    return convert({column: text, "tools": [TOOL]}, dialects.get("harmony"), Reading())


@pytest.mark.parametrize(
    "result",
    [
        RESULT,
        {**RESULT, "content": [{"type": "text", "text": "x"}]},
        {key: value for key, value in RESULT.items() if key not in ("role", "name")}
        | {"author": {"role": "tool", "name": "functions.f"}},
    ],
)
def test_channels_and_recipients_stand_as_recorded(result):
    conversation = check(read(USER, THOUGHT, CALL, result, FINAL, tools=[TOOL]))
    assert neutral_turns(conversation) == WHOLE
    assert [message.recorded for message in conversation.messages] == [0, 1, 2, 3, 4]


def test_arguments_are_kept_in_their_order_and_numbers():
    (call,) = read({**CALL, "content": '{"b":1,"a":1.0}'}).messages
    assert call.text == '{"b": 1, "a": 1.0}'
    assert read({**CALL, "content": {"b": 1}}).messages[0].text == '{"b": 1}'


def test_a_think_tag_in_a_text_is_text():
    assert neutral_turns(read(USER, {**FINAL, "content": "<think>r</think>a"}))[1] == ["final", "<think>r</think>a"]


def test_a_developer_may_bring_the_tools():
    content = {"type": "developer_content", "instructions": "Be brief.", "tools": {"functions": {"tools": [TOOL]}}}
    conversation = check(read({"role": "developer", "content": [content]}, USER, THOUGHT, CALL, RESULT, FINAL))
    assert conversation.tools == (TOOL,)
    assert neutral_turns(conversation)[0] == ["developer", "Be brief."]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"role": "assistant", "content": "a"}, "channel-invalid"),
        ({**FINAL, "channel": "verdict"}, "channel-invalid"),
        ({**FINAL, "channel": 3}, "name-not-text"),
        ({**CALL, "recipient": "browser.search", "content": "weather"}, "tool-name-invalid"),
        ({**CALL, "content": "weather"}, "tool-arguments-not-json"),
        ({**CALL, "content": "[]"}, "tool-arguments-not-object"),
        (CALL, "tool-undefined"),
        ({"role": "Bing", "content": "a"}, "unknown-speaker"),
        ({"role": "function_call", "content": "a"}, "unknown-speaker"),
        ({**FINAL, "author": "user"}, "twin-keys-disagree"),
        ({**FINAL, "content": [{"type": "image_url"}]}, "non-text-content"),
        ({**FINAL, "content": [{"type": "reasoning", "text": "r"}]}, "unknown-content-part"),
        ({**USER, "content": [{"type": "developer_content"}, {"type": "text", "text": "x"}]}, "unknown-content-part"),
        ({**USER, "content": {"type": "developer_content", "tools": {"browser": {}}}}, "tool-definition-invalid"),
        ({**USER, "content": {"type": "developer_content", "tools": {"functions": [3]}}}, "tool-definition-invalid"),
    ],
)
def test_faults(message, code):
    with pytest.raises(Rejected) as caught:
        check(read(USER, message))
    assert (caught.value.code, caught.value.at) == (code, 1)


START, CHANNEL, MESSAGE, END = "<|start|>", "<|channel|>", "<|message|>", "<|end|>"
SAID = f"{START}user{MESSAGE}q{END}"
THINKS = f"{START}assistant{CHANNEL}analysis{MESSAGE}r{END}"
ANSWERS = f"{START}assistant{CHANNEL}final{MESSAGE}a<|return|>"


@pytest.mark.parametrize(
    "call",
    [
        f'{START}assistant{CHANNEL}commentary to=functions.f <|constrain|>json{MESSAGE}{{"n":1}}<|call|>',
        f'{START}assistant{CHANNEL}commentary to=functions.f<|constrain|>json{MESSAGE}{{"n": 1}}<|call|>',
        f'{START}assistant to=functions.f{CHANNEL}commentary json{MESSAGE}{{"n":1}}<|call|>',
        f'{START}assistant to=functions.f{CHANNEL}commentary <|constrain|>json{MESSAGE}{{"n":1}}{END}',
    ],
)
@pytest.mark.parametrize(
    "result",
    [
        f"{START}functions.f to=assistant{CHANNEL}commentary{MESSAGE}x{END}",
        f"{START}functions.f{CHANNEL}commentary to=assistant{MESSAGE}x{END}",
    ],
)
@pytest.mark.parametrize("column", ["text", "messages"])
def test_wire_text_says_the_same_as_objects(call, result, column):
    conversation = check(wire(SAID + THINKS + call + result + ANSWERS, column))
    assert neutral_turns(conversation) == WHOLE
    assert conversation.id == check(read(USER, THOUGHT, CALL, RESULT, FINAL, tools=[TOOL])).id


def test_wire_text_keeps_every_character_of_a_content():
    conversation = wire(f"{START}system{MESSAGE} s\n{END}{START}user{MESSAGE}\nq <b> {END}{ANSWERS}\n")
    assert neutral_turns(conversation) == [["system", " s\n"], ["user", "\nq <b> "], ANSWERED]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (SAID + "x" + ANSWERS, 1),
        (f"{START}user{MESSAGE}q", 0),
        (f"{SAID}{START}assistant{CHANNEL}final{MESSAGE}a{START}user{MESSAGE}b{END}", 1),
        (f"{START}user q{END}", 0),
        (f"{START}user", 0),
        (f"{START}{MESSAGE}q{END}", 0),
        (f"{START}assistant{CHANNEL}{MESSAGE}q{END}", 0),
        (f"{START}assistant{CHANNEL}final{CHANNEL}analysis{MESSAGE}q{END}", 0),
        (f"{START}assistant{CHANNEL}final{MESSAGE}q<|call|>", 0),
        (f"{START}assistant to=functions.f{CHANNEL}commentary to=functions.g{MESSAGE}{{}}<|call|>", 0),
        (f"{START}assistant to={CHANNEL}commentary{MESSAGE}{{}}<|call|>", 0),
        (f"{START}the user said{MESSAGE}q{END}", 0),
        (f"{SAID}{END}", 1),
    ],
)
def test_malformed_wire_text_says_where(text, at):
    with pytest.raises(Rejected) as caught:
        wire(text)
    assert (caught.value.code, caught.value.at) == ("harmony-malformed", at)


def test_wire_text_may_stand_in_another_column():
    record = {"dump": SAID + ANSWERS}
    reading = Reading(Mapping({"messages": "dump"}))
    assert neutral_turns(convert(record, dialects.get("harmony"), reading)) == [ASKED, ANSWERED]


@given(st.lists(st.text(st.characters(exclude_characters="<")), min_size=1, max_size=5))
def test_wire_text_gives_back_what_was_written(texts):
    text = "".join(f"{START}user{MESSAGE}{said}{END}" for said in texts)
    assert [message.text for message in wire(text).messages] == texts
