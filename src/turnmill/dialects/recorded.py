"""What a recorded message says, before calls and results are joined: the half-way shape of every dialect."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from turnmill.conversation import Json, Role


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call as it was recorded."""

    name: str
    arguments: str
    """JSON text of an object, keys in recorded order."""
    id: str | None = None


class Utterance(msgspec.Struct):
    """One recorded message."""

    index: int
    """Place in the recorded list."""
    role: Role
    text: str = ""
    reasoning: str = ""
    """Blank where there is none."""
    calls: tuple[Call, ...] = ()
    reply_to: str | None = None
    """On a tool's result: id of the call it answers."""
    name: str | None = None
    """Author; on a tool's result the tool, without prefix."""
    weight: float | None = None
    verbatim: str | None = None
    """Recorded content, where a think block was taken out of it."""
    tools: Json = None
    """Tool definitions recorded inside the content."""


class HarmonyUtterance(Utterance):
    """A message that says itself on which channel and to whom."""

    channel: str | None = None
    recipient: str | None = None
