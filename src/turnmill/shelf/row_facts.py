"""What is told of a row without showing it: who speaks, how much, and what kinds of turns it has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from turnmill.conversation import Conversation
from turnmill.files.record import Record

if TYPE_CHECKING:
    from turnmill.verbs.check import Outcome

MAX_EXCERPT_CHARACTERS = 160
MAX_ROLES = 48
"""Turns whose speakers are told."""
MAX_SOURCE_CHARACTERS = 120
RAW_EXCERPT_BYTES = 4 * MAX_EXCERPT_CHARACTERS


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a row that could be converted: its size, its speakers and its kinds of turns."""

    turns: int
    characters: int
    speakers: tuple[str, ...]
    """Roles of the turns, in order."""
    has_reasoning: bool
    has_tool_calls: bool
    has_tools: bool


@dataclass(frozen=True, slots=True)
class RowSummary:
    """A row of a list; what only a conversation has is None where the record could not be converted."""

    line: int
    id: str | None
    """Of the conversation; None where it was rejected."""
    code: str | None
    error: str | None
    source: str
    excerpt: str
    turns: int | None = None
    characters: int | None = None
    roles: str | None = None
    """First letters of the turns' roles, a space between two."""
    has_reasoning: bool | None = None
    has_tool_calls: bool | None = None
    has_tools: bool | None = None


def conversation_of(outcome: Outcome) -> Conversation | None:
    """The conversation of a row, whether it was accepted or not; None where there is none."""
    return outcome.conversation if outcome.checked is None else outcome.checked


def shape_of(conversation: Conversation) -> Shape:
    """A conversation's shape; what one recorded message became is one turn."""
    messages = conversation.messages
    speakers = tuple(role for (role, _), _ in groupby(messages, lambda message: (message.role, message.recorded)))
    return Shape(
        turns=len(speakers),
        characters=sum(len(message.text) for message in messages),
        speakers=speakers,
        has_reasoning=any(message.channel == "analysis" for message in messages),
        has_tool_calls=any(message.is_call for message in messages),
        has_tools=bool(conversation.tools),
    )


def source_of(record: Record) -> str:
    """Where a row says it comes from (its field `source`), else the dataset's name."""
    said = record.value.get("source") if record.value is not None else None
    return said[:MAX_SOURCE_CHARACTERS] if isinstance(said, str) and said.strip() else record.source


def summary_of(outcome: Outcome) -> RowSummary:
    """A row as a list says it."""
    conversation, fault = conversation_of(outcome), outcome.fault
    return RowSummary(
        line=outcome.record.source_line,
        id=None if outcome.checked is None else outcome.checked.id,
        code=None if fault is None else fault.code,
        error=None if fault is None else fault.message,
        source=source_of(outcome.record),
        excerpt=_excerpt(outcome.record, conversation),
        **({} if conversation is None else _told(shape_of(conversation))),
    )


def _told(shape: Shape) -> dict[str, Any]:
    has = {key: getattr(shape, key) for key in ("has_reasoning", "has_tool_calls", "has_tools")}
    return {"turns": shape.turns, "characters": shape.characters, "roles": _letters(shape.speakers), **has}


def _letters(speakers: tuple[str, ...]) -> str:
    letters = " ".join(speaker[0] for speaker in speakers[:MAX_ROLES])
    return letters if len(speakers) <= MAX_ROLES else f"{letters} …"


def _excerpt(record: Record, conversation: Conversation | None) -> str:
    """How the first thing that a user says begins, or anybody, or the record."""
    if conversation is not None and conversation.messages:
        messages = conversation.messages
        text = next((one.text for one in messages if one.role == "user"), messages[0].text)
    else:
        text = record.raw[:RAW_EXCERPT_BYTES].decode("utf-8", "replace")
    begun = " ".join(text[: 4 * MAX_EXCERPT_CHARACTERS].split())
    return begun if len(begun) <= MAX_EXCERPT_CHARACTERS else begun[: MAX_EXCERPT_CHARACTERS - 1] + "…"
