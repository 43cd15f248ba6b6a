"""Rules of what is said: text that can be encoded and is not blank, calls whose arguments are an object."""

from __future__ import annotations

from turnmill.contract.json_text import JsonFault, strict_json
from turnmill.contract.state import Fault, Rule, State
from turnmill.conversation import FUNCTIONS, Message
from turnmill.errors import quote


def text_is_unicode(state: State, message: Message) -> Fault | None:
    """Text and names have a UTF-8 form (no lone surrogates)."""
    if message.name is None and message.recipient is None and message.text.isascii():
        return None
    for text in (message.text, message.name or "", message.recipient or ""):
        if not text.isascii():
            try:
                text.encode("utf-8")
            except UnicodeEncodeError as error:
                return "lone-surrogate", f"character {error.start} is half of a surrogate pair"
    return None


def text_is_not_blank(state: State, message: Message) -> Fault | None:
    """Users and assistants say something."""
    if message.text and not message.text.isspace():
        return None
    if message.channel == "text":
        return "blank-text", "the text is blank"
    return "blank-text", f"the text of a {message.role} message ({message.channel or 'no channel'}) is blank"


def arguments_are_an_object(state: State, message: Message) -> Fault | None:
    """A call's text is one JSON object without duplicate keys and non-finite numbers."""
    if not message.is_call:
        return None
    try:
        arguments = strict_json(message.text)
    except JsonFault as fault:
        return f"tool-arguments-{fault.kind}", f"arguments of {quote(message.recipient)}: {fault}"
    if not isinstance(arguments, dict):
        return "tool-arguments-not-object", f"arguments of {quote(message.recipient)} are {quote(arguments)}"
    return None


def called_tool_is_defined(state: State, message: Message) -> Fault | None:
    """Every tool that is called has a definition."""
    if message.recipient is None or state.options.invalid_tool_call == "retain":
        return None
    name = message.recipient.removeprefix(FUNCTIONS)
    if name in state.defined_tools:
        return None
    known = quote(", ".join(sorted(state.defined_tools))) if state.defined_tools else "no tools"
    return "tool-undefined", f"{quote(name)} is called but not defined; the row defines {known}"


def turn_is_short_enough(state: State, message: Message) -> Fault | None:
    """A user's or assistant's text stays under `check.max_turn_characters`."""
    limit = state.options.max_turn_characters
    if limit is None or len(message.text) <= limit:
        return None
    return "turn-too-long", f"the text has {len(message.text)} characters; check.max_turn_characters is {limit}"


def observation_is_short_enough(state: State, message: Message) -> Fault | None:
    """A tool's result stays under `check.max_observation_characters`."""
    limit = state.options.max_observation_characters
    if limit is None or len(message.text) <= limit:
        return None
    size = len(message.text)
    return "observation-too-long", f"the result has {size} characters; check.max_observation_characters is {limit}"


SYSTEM: tuple[Rule, ...] = (text_is_unicode,)
USER: tuple[Rule, ...] = (text_is_unicode, text_is_not_blank, turn_is_short_enough)
ASSISTANT: tuple[Rule, ...] = (
    text_is_unicode,
    text_is_not_blank,
    arguments_are_an_object,
    called_tool_is_defined,
    turn_is_short_enough,
)
TOOL: tuple[Rule, ...] = (text_is_unicode, observation_is_short_enough)
RAW_TEXT: tuple[Rule, ...] = (text_is_unicode, text_is_not_blank)
