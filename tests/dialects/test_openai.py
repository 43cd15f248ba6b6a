"""What the openai dialect makes of a record: neutral turns, or the code of its fault, and what it counted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected

USER = {"role": "user", "content": "q"}
ANSWER = {"role": "assistant", "content": "a"}
ASKED, ANSWERED = ["user", "q"], ["final", "a"]


def call(name: str = "f", arguments=None, **fields) -> dict:
    return {"type": "function", "function": {"name": name, "arguments": arguments or {}}, **fields}


def calling(*calls: dict, **fields) -> dict:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def reply(content: str = "r", **fields) -> dict:
    return {"role": "tool", "content": content, **fields}


def read(*messages, reading: Reading | None = None, **columns):
    record = {"messages": list(messages), **columns}
    return convert(record, dialects.get("openai"), reading or Reading())


def turns(*messages) -> list:
    return neutral_turns(read(*messages))


def code_of(*messages, reading: Reading | None = None, **columns) -> tuple[str, int | None]:
    with pytest.raises(Rejected) as caught:
        read(*messages, reading=reading, **columns)
    return caught.value.code, caught.value.at


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("  indented\n\n", "  indented\n\n"),
        ("x\r\ny\u2028z\u0000", "x\r\ny\u2028z\u0000"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "one"}], "one"),
        ([{"type": "text", "text": "one "}, {"type": "text", "value": "two"}], "one two"),
        ([{"type": "text", "text": "one", "image_url": None}], "one"),
    ],
)
def test_content_is_kept_to_the_byte(content, text):
    assert turns({"role": "user", "content": content}, ANSWER) == [["user", text], ANSWERED]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (42, "non-string-content"),
        (True, "non-string-content"),
        ({"answer": "x"}, "non-string-content"),
        (["x"], "non-string-content"),
        ([{"type": "text", "text": 1}], "non-string-content"),
        ([{"type": "image_url", "image_url": {"url": "u"}}], "non-text-content"),
        ([{"type": "text", "text": "x"}, {"type": "input_audio", "input_audio": {}}], "non-text-content"),
        ([{"type": "image"}], "non-text-content"),
        ([{"image_url": {"url": "u"}}], "non-text-content"),
        ([{"type": "citation", "text": "x"}], "unknown-content-part"),
    ],
)
def test_content_that_is_no_text_is_refused(content, code):
    assert code_of(USER, {"role": "assistant", "content": content}) == (code, 1)


@pytest.mark.parametrize(
    ("assistant", "said"),
    [
        (ANSWER, [ANSWERED]),
        ({**ANSWER, "tool_calls": [], "function_call": None, "name": ""}, [ANSWERED]),
        (calling(call()), [["call", "f", {}]]),
        (calling(call(), content="look"), [["commentary", "look"], ["call", "f", {}]]),
        (calling(call(), content="\n\n"), [["call", "f", {}]]),
        (calling(call(), reasoning="r"), [["analysis", "r"], ["call", "f", {}]]),
        ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, [["call", "f", {}]]),
        ({"role": "assistant", "tool_calls": '[{"name": "f", "arguments": {}}]'}, [["call", "f", {}]]),
        ({"role": "assistant", "content": ""}, [["final", ""]]),
        ({"role": "assistant", "content": "", "reasoning_content": "r"}, [["analysis", "r"]]),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "reasoning", "value": "r"},
                    {"type": "text", "value": "look"},
                    {"type": "tool_call", "value": '{"name": "f", "arguments": {"n": 1}}'},
                ],
            },
            [["analysis", "r"], ["commentary", "look"], ["call", "f", {"n": 1}]],
        ),
    ],
)
def test_an_assistants_message_becomes_reasoning_text_and_calls(assistant, said):
    assert turns(USER, assistant) == [ASKED, *said]


@pytest.mark.parametrize(
    ("arguments", "stored"),
    [
        ({"b": 1, "a": 1.0}, '{"b": 1, "a": 1.0}'),
        ('{"b":1,"a":{"é":[]}}', '{"b": 1, "a": {"é": []}}'),
        ('"{\\"city\\": \\"Oslo\\"}"', '{"city": "Oslo"}'),
        ('{"n": 123456789012345678901}', '{"n": 123456789012345678901}'),
        ('{"note": null}', '{"note": null}'),
    ],
)
def test_arguments_keep_their_keys_and_numbers(arguments, stored):
    assert read(USER, calling(call(arguments=arguments))).messages[1].text == stored


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ('{"city": "Os', "tool-arguments-not-json"),
        ("", "tool-arguments-not-json"),
        ("[1]", "tool-arguments-not-object"),
        ([1], "tool-arguments-not-object"),
        ('"\\"{}\\""', "tool-arguments-not-object"),
        (None, "tool-arguments-not-object"),
        ('{"x": NaN}', "tool-arguments-non-finite"),
        ({"x": float("inf")}, "tool-arguments-non-finite"),
        ('{"x": 1, "x": 2}', "tool-arguments-duplicate-key"),
    ],
)
def test_arguments_that_are_no_object_are_refused(arguments, code):
    wrong = {"function": {"name": "f", "arguments": arguments}}
    assert code_of(USER, {"role": "assistant", "tool_calls": [wrong]}) == (code, 1)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("hi", "message-not-object"),
        ({"content": "x"}, "no-speaker"),
        ({"role": 3, "content": "x"}, "no-speaker"),
        ({"role": "bing", "content": "x"}, "unknown-speaker"),
        ({**ANSWER, "name": 3}, "name-not-text"),
        ({**USER, "tool_calls": [call()]}, "calls-outside-assistant"),
        ({"role": "user", "content": [{"type": "reasoning", "value": "r"}]}, "calls-outside-assistant"),
        (calling({"function": {"arguments": {}}}), "tool-call-malformed"),
        (calling({"type": "custom", "custom": {"name": "f"}}), "tool-call-malformed"),
        (calling(3), "tool-call-malformed"),
        ({"role": "assistant", "tool_calls": "f(x)"}, "tool-call-not-json"),
        (calling(call(id=1.5)), "call-id-not-text"),
        (calling(call(id="a"), call(id="a")), "call-id-repeated"),
        (calling(call(), function_call={"name": "f", "arguments": {}}), "calls-recorded-twice"),
        (reply(), "tool-reply-unmatched"),
        ({**ANSWER, "reasoning": {"effort": "low"}}, "non-string-content"),
        ({**ANSWER, "reasoning": "a", "thinking": "b"}, "reasoning-fields-disagree"),
    ],
)
def test_a_faulty_message_is_refused_where_it_stands(message, code):
    assert code_of(USER, message) == (code, 1)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"messages": None}, "no-messages"),
        ({"messages": []}, "no-messages"),
        ({}, "no-messages"),
        ({"messages": {"user": "q"}}, "messages-not-list"),
        ({"messages": "q"}, "messages-not-list"),
        ({"messages": [USER, ANSWER], "conversations": [{"from": "human", "value": "q"}]}, "ambiguous-columns"),
        ({"messages": [USER, ANSWER], "tools": "f(x)"}, "tools-not-json"),
        ({"messages": [USER, ANSWER], "tools": {"name": "f"}}, "tools-not-list"),
        ({"messages": [USER, ANSWER], "tools": [{"name": "f"}], "functions": [{"name": "g"}]}, "tools-disagree"),
        ({"messages": [USER, ANSWER], "chat_template_kwargs": "x"}, "template-kwargs-invalid"),
        ({"messages": [USER, ANSWER], "chat_template_kwargs": [1]}, "template-kwargs-invalid"),
        ({"messages": [USER, ANSWER], "id": {"n": 1}}, "id-not-text"),
        ({"messages": [USER, ANSWER], "images": ["a.png"]}, "non-text-content"),
        ({"messages": [USER, ANSWER], "image": {"path": "a.png"}}, "non-text-content"),
    ],
)
def test_a_faulty_column_is_refused(columns, code):
    with pytest.raises(Rejected) as caught:
        convert(columns, dialects.get("openai"), Reading())
    assert (caught.value.code, caught.value.at) == (code, None)


TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
BARE = {"name": "f", "parameters": {}}


@pytest.mark.parametrize(
    ("columns", "tools"),
    [
        ({"tools": [TOOL]}, (TOOL,)),
        ({"tools": [BARE]}, (BARE,)),
        ({"functions": [BARE]}, (BARE,)),
        ({"tools": '[{"name": "f", "parameters": {}}]'}, (BARE,)),
        ({"tools": ['{"name": "f", "parameters": {}}']}, (BARE,)),
        ({"tools": [BARE], "functions": [BARE]}, (BARE,)),
        ({"chat_template_kwargs": {"tools": [BARE]}}, (BARE,)),
        ({"chat_template_kwargs": '{"tools": [{"name": "f", "parameters": {}}]}'}, (BARE,)),
        ({"tools": None}, ()),
        ({"tools": "[]", "functions": ""}, ()),
        ({"tool_defs": [BARE]}, (BARE,)),
        ({"helpers": [BARE]}, ()),
    ],
)
def test_tools_are_found_where_they_are_declared(columns, tools):
    assert read(USER, ANSWER, **columns).tools == tools


@pytest.mark.parametrize("columns", [{"images": []}, {"audio": None}, {"image": "python:3.11"}])
def test_columns_that_hold_no_media_are_only_undeclared(columns):
    assert neutral_turns(read(USER, ANSWER, **columns)) == [ASKED, ANSWERED]


def test_tools_inside_a_system_message_are_the_rows():
    parts = [{"type": "text", "value": "s"}, {"type": "tools", "value": [BARE]}]
    conversation = read({"role": "system", "content": parts}, USER, ANSWER)
    assert conversation.tools == (BARE,)
    assert neutral_turns(conversation) == [["system", "s"], ASKED, ANSWERED]


def test_mapped_names_are_read_and_theirs_alone():
    mapping = Mapping({"messages": "dialog", "tools": "api", "id": "key"}, {"role": "who", "content": "says"})
    record = {
        "dialog": [{"who": "user", "says": "q"}, {"who": "assistant", "says": "a"}],
        "api": [BARE],
        "tools": [TOOL],
        "key": 7,
    }
    conversation = convert(record, dialects.get("openai"), Reading(mapping))
    assert (conversation.tools, conversation.source_id) == ((BARE,), "7")
    assert neutral_turns(conversation) == [ASKED, ANSWERED]


def test_roles_admit_a_speaker():
    reading = Reading(Mapping(roles={"bing": "assistant", "Student": "user"}))
    conversation = read({"role": "Student", "content": "q"}, {"role": "bing", "content": "a"}, reading=reading)
    assert neutral_turns(conversation) == [ASKED, ANSWERED]


@pytest.mark.parametrize(
    ("recorded", "has_reasoning", "kept", "counted"),
    [
        (True, False, {}, 1),
        (False, True, {}, 1),
        (True, True, {}, 0),
        (None, True, {}, 0),
        ("/no_think", True, {"enable_thinking": "/no_think"}, 0),
    ],
)
def test_a_boolean_enable_thinking_is_what_the_messages_say(recorded, has_reasoning, kept, counted):
    reading = Reading()
    answer = {**ANSWER, "reasoning": "r"} if has_reasoning else ANSWER
    conversation = read(USER, answer, reading=reading, chat_template_kwargs={"enable_thinking": recorded})
    assert conversation.template_kwargs == kept
    assert reading.counts["read/enable-thinking-replaced"] == counted


def test_undeclared_fields_are_counted_and_named_and_kept_on_demand():
    reading = Reading(keep_columns=("topic", "absent"))
    conversation = read(
        {**USER, "timestamp": 3, "note": None}, ANSWER, reading=reading, id="x", topic="t", score=1, empty=None
    )
    assert conversation.meta == {"topic": "t"}
    assert reading.counts == {"read/undeclared-column/score": 1, "read/undeclared-key/timestamp": 1}


@pytest.mark.parametrize(
    ("message", "counter"),
    [
        ({**ANSWER, "role": "Assistant"}, "read/role-case-folded"),
        ({**ANSWER, "tool_calls": []}, "read/empty-keys-dropped"),
        ({**ANSWER, "content": [{"type": "text", "text": "a"}] * 2}, "read/text-parts-joined"),
        ({**ANSWER, "content": "<tool_call>{}</tool_call>"}, "read/inline-tool-call"),
        (calling(call()), "read/ids-synthesised"),
        (calling(call(arguments="{}")), "read/arguments-json-text"),
        (calling(call(arguments='"{}"')), "read/arguments-double-encoded"),
        (calling(call(), content=" "), "read/blank-text-dropped"),
    ],
)
def test_what_is_always_mended_is_counted(message, counter):
    reading = Reading()
    read(USER, message, reading=reading)
    assert reading.counts[counter] == 1


def test_messages_know_where_they_were_recorded():
    conversation = read({"role": "developer", "content": "d"}, USER, calling(call(), content="look"), reply(), ANSWER)
    assert [message.recorded for message in conversation.messages] == [0, 1, 2, 2, 3, 4]


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4), st.text())
def test_no_character_of_plain_text_changes(pairs, system):
    texts = [system, *(text for pair in pairs for text in pair)]
    roles = ["system", *["user", "assistant"] * len(pairs)]
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    assert [message.text for message in read(*messages).messages] == texts
