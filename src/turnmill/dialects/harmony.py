"""Harmony messages with channels and recipients, as objects or as the wire text that gpt-oss reads and writes.

What is recorded stands: channels, recipients and authors are taken as they are, and the contract judges them. A
developer's tools are read where they are an object (`developer_content`), never out of a text.
"""

from __future__ import annotations

from collections import Counter

from turnmill.conversation import FUNCTIONS, Channel, Conversation, Json, Message
from turnmill.dialects import Reading, dialect, writer
from turnmill.dialects.calls import read_arguments
from turnmill.dialects.content import read_content
from turnmill.dialects.fields import Fields
from turnmill.dialects.recorded import HarmonyUtterance, Utterance
from turnmill.dialects.row import open_chat, read_row
from turnmill.dialects.turns import Manner, Speaker, open_message, read_speaker
from turnmill.dialects.weights import read_weight
from turnmill.dialects.wire import is_wire, read_wire
from turnmill.dialects.writing import enveloped_tools, shared_columns
from turnmill.errors import Rejected, quote

SPEAKERS: dict[str, Speaker] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
MANNER = Manner(SPEAKERS)
WIRE_COLUMNS = ("text", "messages")
"""Where wire text may stand, first wins."""


@dialect("harmony")
def harmony(record: dict[str, Json], reading: Reading) -> Conversation:
    """Harmony: messages with channel and recipient, as objects or as wire text (<|start|>…<|end|>)."""
    fields, messages = open_chat(_with_list(record, reading), reading, "messages", "conversation")
    utterances: list[Utterance] = [_utterance(message, index, reading) for index, message in enumerate(messages)]
    return read_row(fields, utterances, reading, assembly=_messages)


def _with_list(record: dict[str, Json], reading: Reading) -> dict[str, Json]:
    """The record with its wire text as a list of messages."""
    mapped = reading.mapping.columns.get("messages")
    for column in (mapped,) if mapped else WIRE_COLUMNS:
        if is_wire(record.get(column)):
            rest = {key: value for key, value in record.items() if key != column}
            return {**rest, mapped or "messages": read_wire(record[column])}
    return record


def _utterance(message: Json, index: int, reading: Reading) -> HarmonyUtterance:
    fields = open_message(message, index, reading)
    role, name = _author(fields, index)
    speaker = read_speaker(role, index, MANNER, reading)
    if speaker == "function_call":
        raise Rejected("unknown-speaker", "function_call speaks; a call is an assistant's, to a recipient", at=index)
    said = HarmonyUtterance(index, speaker, name=name)
    said.channel = _text_or_none(fields, "channel", index)
    said.recipient = _text_or_none(fields, "recipient", index)
    fields.take("content_type")
    _add_content(said, fields.take_one("content", at=index), reading.counts)
    said.weight = read_weight(fields, said, fractional=reading.fractional, counts=reading.counts)
    fields.count_left(reading.counts, "key")
    return said


def _author(fields: Fields, index: int) -> tuple[Json, str | None]:
    """Role and name, which may stand in an object of their own."""
    author = fields.take("author")
    inside = author if isinstance(author, dict) else {"role": author}
    for key in ("role", "name"):
        if inside.get(key) is not None and fields.rest.setdefault(key, inside[key]) != inside[key]:
            raise Rejected("twin-keys-disagree", f"author says another {key} than the message", at=index)
    return fields.take_one("role"), _text_or_none(fields, "name", index)


def _text_or_none(fields: Fields, key: str, index: int) -> str | None:
    value = fields.take(key)
    if value is None or isinstance(value, str):
        return value
    raise Rejected("name-not-text", f"{key} of a message is {quote(value)}; expected text", at=index)


def _add_content(said: HarmonyUtterance, value: Json, counts: Counter[str]) -> None:
    """Text, in parts perhaps; of a developer also an object of instructions and tools; of a call its arguments."""
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, dict) and part.get("type") == "developer_content" for part in parts):
        value, said.tools = _developer_content(parts, said.index)
    call = said.role == "assistant" and (said.recipient or "").removeprefix(FUNCTIONS)
    if call and isinstance(value, dict):
        said.text = read_arguments(value, call, said.index, counts)
        return
    content = read_content(value, said.index, counts)
    if content.calls or content.reasoning or content.tools is not None:
        raise Rejected("unknown-content-part", "a Harmony message holds other parts than text", at=said.index)
    said.text = content.text
    if call and said.recipient != call:  # a call to another namespace has no arguments that we know
        said.text = read_arguments(content.text, call, said.index, counts)


def _developer_content(parts: list[Json], index: int) -> tuple[Json, Json]:
    """Instructions, and the definitions of the namespace `functions`."""
    if len(parts) != 1:
        raise Rejected("unknown-content-part", "developer_content stands beside other parts", at=index)
    spaces = parts[0].get("tools") or {}
    if not isinstance(spaces, dict) or any(space != "functions" for space in spaces):
        raise Rejected("tool-definition-invalid", f"tools are {quote(spaces)}; expected the space functions", at=index)
    functions = spaces.get("functions") or {}
    if not isinstance(functions, dict):
        raise Rejected("tool-definition-invalid", f"functions are {quote(functions)}; expected an object", at=index)
    return parts[0].get("instructions"), functions.get("tools")


CHANNELS: dict[str | None, Channel | None] = {
    None: None,
    "analysis": "analysis",
    "commentary": "commentary",
    "final": "final",
}


def _messages(utterances: list[Utterance], counts: Counter[str]) -> tuple[Message, ...]:
    """The utterances as they are: Harmony is our own shape."""
    return tuple(_message(said) for said in utterances if isinstance(said, HarmonyUtterance))


def _message(said: HarmonyUtterance) -> Message:
    if said.channel not in CHANNELS:
        raise Rejected("channel-invalid", f"a message is on the channel {quote(said.channel)}", at=said.index)
    return Message(
        said.role,
        said.text,
        CHANNELS[said.channel],
        name=said.name,
        recipient=said.recipient,
        weight=said.weight,
        recorded=said.index,
    )


@writer("harmony")
def write_harmony(conversation: Conversation) -> dict[str, Json]:
    """Messages as objects with channel and recipient, one for each of ours."""
    record: dict[str, Json] = {"messages": [_object(message) for message in conversation.messages]}
    return record | enveloped_tools(conversation) | shared_columns(conversation)


def _object(message: Message) -> Json:
    values: dict[str, Json] = {
        "role": message.role,
        "name": message.name,
        "channel": message.channel,
        "recipient": message.recipient,
    }
    content_type = "json" if message.is_call else None
    values |= {"content_type": content_type, "content": message.text, "weight": message.weight}
    return {key: value for key, value in values.items() if value is not None}
