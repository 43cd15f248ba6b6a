"""The contract, rule by rule: conversations as short lists, with the code that refuses them."""

from __future__ import annotations

import msgspec
import pytest

from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.errors import Rejected
from turnmill.options import Check

TOOLS = tuple({"name": name, "parameters": {}} for name in "fgh")

SYSTEM, DEVELOPER = Message("system", "s"), Message("developer", "d")
USER, FINAL = Message("user", "u"), Message("assistant", "a", "final")
ANALYSIS, COMMENTARY = Message("assistant", "r", "analysis"), Message("assistant", "c", "commentary")


def call(name: str = "f", arguments: str = "{}", channel: str = "commentary") -> Message:
    return Message("assistant", arguments, channel, recipient=f"functions.{name}")


def reply(name: str = "f", text: str = "ok") -> Message:
    return Message("tool", text, "commentary", name=f"functions.{name}", recipient="assistant")


def conversation(*messages: Message, tools=TOOLS, **fields) -> Conversation:
    numbered = tuple(msgspec.structs.replace(message, recorded=n) for n, message in enumerate(messages))
    return Conversation(numbered, tools, **fields)


def code_of(subject: Conversation, options: Check | None = None) -> tuple[str, int | None] | None:
    try:
        check(subject, options)
    except Rejected as rejected:
        return rejected.code, rejected.at
    return None


@pytest.mark.parametrize(
    "messages",
    [
        [USER, FINAL],
        [SYSTEM, USER, FINAL],
        [SYSTEM, DEVELOPER, SYSTEM, USER, FINAL],
        [Message("system", ""), USER, FINAL],
        [USER, ANALYSIS, ANALYSIS, COMMENTARY, ANALYSIS, FINAL],
        [USER, FINAL, USER, FINAL],
        [USER, call(), reply(), FINAL],
        [USER, COMMENTARY, call(), reply(), ANALYSIS, call("g"), reply("g"), FINAL],
        [USER, call("f"), call("g"), reply("f"), reply("g"), FINAL],
        [USER, call()],
        [USER, call(), call()],
        [USER, call(), reply(), USER, FINAL],
        [USER, call(), reply(text=""), FINAL],
        [Message("user", "u", name="ann"), Message("assistant", "a", "final", name="bot")],
    ],
)
def test_keeps_every_sound_order(messages):
    sound = conversation(*messages)
    assert check(sound) is sound


@pytest.mark.parametrize(
    ("messages", "code", "at"),
    [
        ([], "no-messages", None),
        ([SYSTEM], "no-assistant-turn", None),
        ([USER], "no-assistant-turn", None),
        ([FINAL], "first-turn-not-user", 0),
        ([SYSTEM, FINAL, USER, FINAL], "first-turn-not-user", 1),
        ([reply(), FINAL], "first-turn-not-user", 0),
        ([USER, SYSTEM, FINAL], "system-not-first", 1),
        ([USER, FINAL, DEVELOPER, USER, FINAL], "system-not-first", 2),
        ([USER, USER, FINAL], "user-after-user", 1),
        ([USER, FINAL, USER], "last-turn-not-assistant", 2),
        ([USER, FINAL, FINAL], "assistant-after-final", 2),
        ([USER, FINAL, ANALYSIS], "assistant-after-final", 2),
        ([USER, FINAL, call()], "assistant-after-final", 2),
        ([USER, ANALYSIS], "turn-without-answer", 1),
        ([USER, COMMENTARY], "turn-without-answer", 1),
        ([USER, ANALYSIS, USER, FINAL], "turn-without-answer", 2),
        ([USER, call(), reply()], "last-turn-not-assistant", 2),
        ([USER, call(), USER, FINAL], "calls-unanswered", 2),
        ([USER, call("f"), call("g"), reply("g"), reply("f"), FINAL], "tool-reply-unmatched", 3),
        ([USER, call(), reply(), reply(), FINAL], "tool-reply-unmatched", 3),
        ([USER, FINAL, reply()], "tool-reply-unmatched", 2),
        ([USER, call(), call(), reply(), call()], "call-between-replies", 4),
        ([USER, call(), COMMENTARY, reply(), FINAL], "text-before-replies", 2),
        ([USER, call(), call(), reply(), FINAL], "text-before-replies", 4),
        ([USER, call(), call(), reply()], "partial-batch", 3),
        ([Message("user", " \n"), FINAL], "blank-text", 0),
        ([USER, Message("assistant", "", "final")], "blank-text", 1),
        ([USER, Message("assistant", "\u2003", "analysis"), FINAL], "blank-text", 1),
    ],
)
def test_refuses_every_broken_order(messages, code, at):
    assert code_of(conversation(*messages)) == (code, at)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (Message("assistant", "a"), "channel-invalid"),
        (Message("assistant", "a", "thoughts"), "channel-invalid"),
        (call(channel="final"), "channel-invalid"),
        (call(channel="analysis"), "channel-invalid"),
        (Message("assistant", "{}", "commentary", recipient="browser.f"), "tool-name-invalid"),
        (call(""), "tool-name-invalid"),
        (call("get weather"), "tool-name-invalid"),
        (call("unknown"), "tool-undefined"),
        (call(arguments="{"), "tool-arguments-not-json"),
        (call(arguments="[]"), "tool-arguments-not-object"),
        (call(arguments='{"x": NaN}'), "tool-arguments-non-finite"),
        (call(arguments='{"x": [-Infinity]}'), "tool-arguments-non-finite"),
        (call(arguments='{"x": 1e999}'), "tool-arguments-non-finite"),
        (call(arguments='{"x": {"y": 1, "y": 1}}'), "tool-arguments-duplicate-key"),
        (Message("assistant", "half \ud83d", "final"), "lone-surrogate"),
        (Message("narrator", "a", "final"), "unknown-speaker"),
    ],
)
def test_refuses_a_message_that_breaks_a_rule_by_itself(message, code):
    assert code_of(conversation(USER, message)) == (code, 1)


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([Message("system", "s", "final"), USER, FINAL], "channel-invalid"),
        ([Message("user", "u", recipient="assistant"), FINAL], "recipient-invalid"),
        ([USER, call(), Message("tool", "", "final", "functions.f", "assistant"), FINAL], "channel-invalid"),
        ([USER, call(), Message("tool", "", "commentary", "functions.f"), FINAL], "recipient-invalid"),
        ([USER, call(), Message("tool", "", "commentary", "f", "assistant"), FINAL], "tool-reply-unmatched"),
    ],
)
def test_refuses_wrong_addresses(messages, code):
    assert code_of(conversation(*messages))[0] == code


def test_the_fault_of_a_text_outside_the_list_names_no_message():
    outside = Message("system", "\ud800")
    assert code_of(Conversation((outside, USER, FINAL))) == ("lone-surrogate", None)


HALF = [USER, FINAL, USER, COMMENTARY, call("f"), call("g"), reply("f")]


@pytest.mark.parametrize(
    ("messages", "options", "code"),
    [
        ([USER, call()], {"unanswered_calls": "reject"}, "calls-unanswered"),
        ([USER, call("unknown"), reply("unknown"), FINAL], {"invalid_tool_call": "retain"}, None),
        ([USER, call("get weather")], {"invalid_tool_call": "retain"}, "tool-name-invalid"),
        (HALF, {}, "partial-batch"),
        (HALF, {"partial_batch": "trim"}, None),
        (HALF[2:], {"partial_batch": "trim"}, "partial-batch"),
        ([USER, FINAL], {"max_turn_characters": 1}, None),
        ([USER, Message("assistant", "aa", "final")], {"max_turn_characters": 1}, "turn-too-long"),
        ([USER, call(), reply(text="okay"), FINAL], {"max_observation_characters": 3}, "observation-too-long"),
        ([USER, call(), reply(text="okay"), FINAL], {"max_observation_characters": 4}, None),
    ],
)
def test_policies_and_ceilings(messages, options, code):
    found = code_of(conversation(*messages), Check(**options))
    assert (found and found[0]) == code


def test_trimming_ends_the_row_at_the_last_answer():
    trimmed = check(conversation(*HALF), Check(partial_batch="trim"))
    assert [message.text for message in trimmed.messages] == ["u", "a"]


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        ([{"name": "f", "parameters": {}}], None),
        ([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}], None),
        ([{"name": "f", "parameters": {}}, {"name": "unused", "parameters": {}}], None),
        (["f"], "tool-definition-invalid"),
        ([{"function": "f"}], "tool-definition-invalid"),
        ([{"parameters": {}}], "tool-definition-invalid"),
        ([{"name": "f"}], "tool-definition-invalid"),
        ([{"name": "f", "parameters": None}], "tool-definition-invalid"),
        ([{"name": "f", "parameters": {"maximum": float("inf")}}], "tool-definition-invalid"),
        ([{"name": "f", "parameters": {}, "description": "\udc00"}], "tool-definition-invalid"),
        ([{"name": "a tool", "parameters": {}}], "tool-name-invalid"),
        ([{"name": "f", "parameters": {}}, {"function": {"name": "f", "parameters": {}}}], "tool-name-repeated"),
        ([], "tool-undefined"),
    ],
)
def test_tool_definitions(tools, code):
    found = code_of(conversation(USER, call(), reply(), FINAL, tools=tuple(tools)))
    assert (found and found[0]) == code


@pytest.mark.parametrize(
    ("kwargs", "sound"),
    [
        ({"enable_thinking": "/think"}, True),
        ({"enable_thinking": True, "reasoning_effort": "high", "whatever": [1, None]}, True),
        ({"thinking_budget": None, "documents": []}, True),
        ({"enable_thinking": 1}, False),
        ({"thinking_budget": True}, False),
        ({"documents": "none"}, False),
        ({"add_generation_prompt": False}, False),
        ({"messages": []}, False),
        ({"temperature": float("nan")}, False),
    ],
)
def test_template_arguments(kwargs, sound):
    found = code_of(conversation(USER, FINAL, template_kwargs=kwargs))
    assert found == (None if sound else ("template-kwargs-invalid", None))


def test_a_message_quotes_at_most_eighty_characters_of_the_row():
    with pytest.raises(Rejected) as caught:
        check(conversation(USER, call("x" * 5000)))
    assert len(caught.value.message) < 250
