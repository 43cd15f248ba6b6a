"""The way back: a conversation as a record of a dialect, which that dialect reads as the same conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from turnmill.contract.definitions import bare_function, enveloped
from turnmill.conversation import FUNCTIONS, NOT_RECORDED, Conversation, Json, Message, Role
from turnmill.dialects import Reading, convert, dialects, writer_of
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected, quote

TEXT = "text"
"""The one dialect of raw texts."""

OPENER, CLOSER = "<think>", "</think>"
"""Around reasoning where the dialect has no field for it."""


@dataclass(slots=True)
class Said:
    """What one message of a dialect can say at once: reasoning, then text, then calls, of one weight."""

    role: Role
    name: str | None
    weight: float | None
    recorded: int
    reasoning: str | None = None
    text: str | None = None
    calls: list[Message] = field(default_factory=list)

    def takes(self, message: Message) -> bool:
        """Whether a message of the same turn can go on here."""
        if self.role != "assistant" or message.role != "assistant":
            return False
        if (self.name, self.weight) != (message.name, message.weight):
            return False
        return message.is_call or (not self.calls and self.text is None and message.channel != "analysis")

    def add(self, message: Message) -> None:
        """Take in a message."""
        if message.is_call:
            self.calls.append(message)
        elif message.channel == "analysis":
            self.reasoning = message.text
        else:
            self.text = message.text


def said_together(conversation: Conversation) -> list[Said]:
    """The messages, those of a turn together where one message can say them; a result's name is without prefix."""
    said: list[Said] = []
    for message in conversation.messages:
        if not said or not said[-1].takes(message):
            name = message.name.removeprefix(FUNCTIONS) if message.name and message.role == "tool" else message.name
            said.append(Said(message.role, name, message.weight, message.recorded))
        said[-1].add(message)
    return said


def with_think_block(text: str, reasoning: str | None) -> str:
    """A text led by its reasoning."""
    return text if reasoning is None else f"{OPENER}\n{reasoning}\n{CLOSER}\n\n{text}"


def enveloped_tools(conversation: Conversation) -> dict[str, Json]:
    """The column `tools`: as recorded, Anthropic's definitions in OpenAI's envelope; nothing where there is none."""
    if not conversation.tools:
        return {}
    return {"tools": [enveloped(tool) if _is_anthropic(tool) else tool for tool in conversation.tools]}


def _is_anthropic(tool: Json) -> bool:
    return isinstance(tool, dict) and "input_schema" in tool and "function" not in tool


def shared_columns(conversation: Conversation) -> dict[str, Json]:
    """The columns that every dialect has: the row's id and template arguments, where there are any."""
    columns = {"id": conversation.source_id, "chat_template_kwargs": conversation.template_kwargs or None}
    return {name: value for name, value in columns.items() if value is not None}


def write_record(conversation: Conversation, dialect: str) -> dict[str, Json]:
    """A record of a dialect, read back to the same turns, weights, tools and template arguments.

    Raises:
        Rejected: `dialect-cannot-say`.
        UnknownName: no dialect that can be written.
    """
    write = writer_of(dialect)
    if conversation.is_raw_text and dialect != TEXT:
        raise Rejected("dialect-cannot-say", f"{dialect} holds chats; this is a raw text (--to {TEXT})")
    record = write(conversation)
    try:
        back = convert(record, dialects.get(dialect), Reading(fractional=True))
    except Rejected as fault:
        raise Rejected("dialect-cannot-say", f"{dialect} would read it as {fault}") from None
    _require_same(conversation, back, dialect)
    return record


def _require_same(conversation: Conversation, back: Conversation, dialect: str) -> None:
    ours, theirs = _what_is_said(conversation), _what_is_said(back)
    for number, message in enumerate(conversation.messages):
        other = theirs[number] if number < len(theirs) else None
        if ours[number] != other:
            fault = f"{dialect} would read it as {quote(other)}"
            raise Rejected("dialect-cannot-say", fault, at=_place(message))
    if len(theirs) > len(ours):
        raise Rejected("dialect-cannot-say", f"{dialect} would read {len(theirs)} messages where {len(ours)} are")
    if list(map(bare_function, conversation.tools)) != list(map(bare_function, back.tools)):
        raise Rejected("dialect-cannot-say", f"{dialect} has no form for the tool definitions")
    if conversation.template_kwargs != back.template_kwargs:
        raise Rejected("dialect-cannot-say", f"{dialect} has no form for the template arguments")


def _what_is_said(conversation: Conversation) -> Sequence[Json]:
    turns = neutral_turns(conversation)
    return [[*turn, message.name, message.weight] for turn, message in zip(turns, conversation.messages, strict=True)]


def _place(message: Message) -> int | None:
    return None if message.recorded == NOT_RECORDED else message.recorded
