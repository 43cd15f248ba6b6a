"""One recorded chat message → an utterance: who speaks, what is said, which calls are made."""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from dataclasses import dataclass
from typing import Literal, get_args

from turnmill.conversation import Json
from turnmill.dialects import Reading
from turnmill.dialects.calls import read_call_id, read_calls
from turnmill.dialects.content import Content, read_content
from turnmill.dialects.fields import Fields
from turnmill.dialects.reasoning import REASONING_KEYS, place_reasoning, reasoning_field
from turnmill.dialects.recorded import Call, Utterance
from turnmill.dialects.weights import WEIGHT_KEYS, read_weight
from turnmill.errors import Rejected, UnknownName, quote

Speaker = Literal["system", "developer", "user", "assistant", "tool", "function_call"]
"""A role, or `function_call`: an assistant whose whole text is its calls."""

SPEAKERS: dict[str, Speaker] = {speaker: speaker for speaker in get_args(Speaker)}

INLINE_CALL = "<tool_call>"

MESSAGE_KEYS = (
    "role", "content", "name", "tool_calls", "function_call", "tool_call_id", *REASONING_KEYS, *WEIGHT_KEYS,
)  # fmt: skip
"""Our names of the fields of a message, which `tags` may map."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How the messages of a dialect name their speakers and fields."""

    speakers: AbstractMapping[str, Speaker]
    """Lower-case speaker → what it is here."""
    role_keys: tuple[str, ...] = ()
    """Further spellings of `role`."""
    content_keys: tuple[str, ...] = ()
    """Further spellings of `content`."""


def read_message(message: Json, index: int, manner: Manner, reading: Reading) -> Utterance:
    """The utterance of one recorded message.

    Raises:
        Rejected: what the message cannot be read as.
    """
    plain = _plain_message(message, index, manner, reading)
    if plain is not None:
        return plain
    fields = open_message(message, index, reading)
    speaker = read_speaker(fields.take_one("role", *manner.role_keys, at=index), index, manner, reading)
    value = fields.take_one("content", *manner.content_keys, at=index)
    if speaker == "function_call":
        utterance = _spoken_call(value, index, fields, reading)
    else:
        utterance = Utterance(index, speaker)
        content = read_content(value, index, reading.counts)
        utterance.text, utterance.tools = content.text, content.tools
        if speaker == "assistant":
            _add_assistant(utterance, content, fields, reading)
        elif content.reasoning or content.calls:
            raise Rejected("calls-outside-assistant", f"a {speaker} message holds calls or reasoning", at=index)
    if fields.rest:
        _add_optional_fields(utterance, fields, reading)
    fields.count_left(reading.counts, "key")
    return utterance


def _plain_message(message: Json, index: int, manner: Manner, reading: Reading) -> Utterance | None:
    """The utterance of a message that holds a known speaker and a text, and nothing else: most are so."""
    if type(message) is not dict or len(message) != 2 or reading.mapping.tags or reading.mapping.roles:
        return None
    role, text = message.get("role"), message.get("content")
    if type(role) is not str or type(text) is not str:
        return None
    speaker = manner.speakers.get(role)
    if speaker is None or speaker == "function_call":
        return None
    utterance = Utterance(index, speaker, text)
    if speaker == "assistant":
        settle_answer(utterance, "", reading)
    return utterance


def open_message(message: Json, index: int, reading: Reading) -> Fields:
    """The fields of one recorded message.

    Raises:
        Rejected: `message-not-object`.
    """
    if not isinstance(message, dict):
        raise Rejected("message-not-object", f"a message is {quote(message)}; expected an object", at=index)
    return Fields(message, reading.mapping.tags)


def read_speaker(value: Json, index: int, manner: Manner, reading: Reading) -> Speaker:
    """Who speaks, as the dialect or the source's `roles` have it.

    Raises:
        Rejected: `no-speaker` or `unknown-speaker`.
    """
    if not isinstance(value, str):
        raise Rejected("no-speaker", f"the speaker of a message is {quote(value)}; expected text", at=index)
    mapped = reading.mapping.roles.get(value)
    if mapped is not None:
        return _our_speaker(mapped, manner)
    folded = value.lower()
    speaker = manner.speakers.get(folded)
    if speaker is None:
        known = ", ".join(manner.speakers)
        advice = f"expected {known}; `roles: {{{quote(value, 30)}: assistant}}` would admit it"
        raise Rejected("unknown-speaker", f"{quote(value)} speaks; {advice}", at=index)
    if folded != value:
        reading.counts["read/role-case-folded"] += 1
    return speaker


def _our_speaker(name: str, manner: Manner) -> Speaker:
    known: dict[str, Speaker] = {**manner.speakers, **SPEAKERS}
    if name not in known:
        raise UnknownName("role", name, known)
    return known[name]


def _spoken_call(value: Json, index: int, fields: Fields, reading: Reading) -> Utterance:
    """An assistant's utterance that is its calls, as JSON text (a think block may lead it) or as a value."""
    utterance = Utterance(index, "assistant", value if isinstance(value, str) else "")
    place_reasoning(utterance, reasoning_field(fields, index), reading.think_tags, reading.counts)
    utterance.calls = read_calls(utterance.text if isinstance(value, str) else value, index, reading.counts)
    utterance.text = ""
    return utterance


def _add_assistant(utterance: Utterance, content: Content, fields: Fields, reading: Reading) -> None:
    reasoning = content.reasoning
    if fields.rest:
        recorded = reasoning_field(fields, utterance.index)
        if recorded and reasoning and recorded != reasoning:
            message = "a reasoning part and a reasoning field differ"
            raise Rejected("reasoning-fields-disagree", message, at=utterance.index)
        reasoning = recorded or reasoning
        utterance.calls = _recorded_calls(content, fields, utterance.index, reading)
    else:
        utterance.calls = content.calls
    settle_answer(utterance, reasoning, reading)


def settle_answer(utterance: Utterance, reasoning: str, reading: Reading) -> None:
    """Give an assistant's utterance its reasoning, and count what its text holds."""
    place_reasoning(utterance, reasoning, reading.think_tags, reading.counts)
    if INLINE_CALL in utterance.text:
        reading.counts["read/inline-tool-call"] += 1


def _recorded_calls(content: Content, fields: Fields, index: int, reading: Reading) -> tuple[Call, ...]:
    places = [content.calls] if content.calls else []
    places += [
        read_calls(value, index, reading.counts)
        for key in ("tool_calls", "function_call")
        if (value := fields.take(key)) is not None
    ]
    if len(places) > 1:
        raise Rejected("calls-recorded-twice", "a message records calls in two places", at=index)
    return places[0] if places else ()


def _add_optional_fields(utterance: Utterance, fields: Fields, reading: Reading) -> None:
    index = utterance.index
    name = fields.take("name")
    if name is not None and not isinstance(name, str):
        raise Rejected("name-not-text", f"a message's name is {quote(name)}; expected text", at=index)
    utterance.name = name
    if utterance.role == "tool":
        utterance.reply_to = read_call_id(fields.take("tool_call_id"), index)
    if utterance.role != "assistant" and any(fields.take(key) for key in ("tool_calls", "function_call")):
        raise Rejected("calls-outside-assistant", f"a {utterance.role} message holds calls", at=index)
    for key in ("tool_call_id", *REASONING_KEYS):
        if fields.rest.get(key) == "":
            fields.take(key)
    utterance.weight = read_weight(fields, utterance, fractional=reading.fractional, counts=reading.counts)
