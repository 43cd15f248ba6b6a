"""Chats of nothing but known speakers and texts, read at once: most are so, and the rest is read field by field."""

from __future__ import annotations

from functools import lru_cache

from turnmill.conversation import Json, Message, Role
from turnmill.dialects import Reading
from turnmill.dialects.reasoning import openers_and_closers
from turnmill.dialects.turns import INLINE_CALL, Manner, Speaker

NUL = "\0"
PLAIN_ROLES: dict[Speaker | None, Role] = {
    "system": "system", "developer": "developer", "user": "user", "assistant": "assistant",
}  # fmt: skip
"""Who says nothing but texts, and answers no call."""


def plain_messages(messages: list[Json], manner: Manner, reading: Reading) -> tuple[Message, ...] | None:
    """The messages of a chat, as reading each and assembling them would give them; None where that must be done.

    Each must have two fields, a speaker who is no tool and a text, and no assistant's text may hold a tag that would
    be taken out or counted.
    """
    if reading.mapping.tags or reading.mapping.roles:
        return None
    made: list[Message] = []
    for index, message in enumerate(messages):
        if type(message) is not dict or len(message) != 2:
            return None
        role, text = message.get("role"), message.get("content")
        if role is None and manner.role_keys:
            role, text = _other_spelling(message, manner)
        speaker = PLAIN_ROLES.get(manner.speakers.get(role)) if type(role) is str else None
        if type(text) is not str or speaker is None:
            return None
        made.append(Message(speaker, text, "final" if speaker == "assistant" else None, recorded=index))
    return None if _holds_marks(made, reading.think_tags) else tuple(made)


def _other_spelling(message: dict[str, Json], manner: Manner) -> tuple[Json, Json]:
    """Speaker and text under the dialect's own names, where it has one for each."""
    if len(manner.role_keys) != 1 or len(manner.content_keys) != 1:
        return None, None
    return message.get(manner.role_keys[0]), message.get(manner.content_keys[0])


def _holds_marks(messages: list[Message], think_tags: tuple[str, ...]) -> bool:
    """Whether the texts may hold what is counted or taken out; a few hold its letters alone."""
    together = NUL.join([message.text for message in messages])
    if together.count(NUL) >= len(messages):
        return True
    marks = [mark for mark in _marks(think_tags) if mark[0] in together]
    return any(mark in message.text for mark in marks for message in messages if message.role == "assistant")


@lru_cache(maxsize=64)
def _marks(think_tags: tuple[str, ...]) -> tuple[str, ...]:
    return (INLINE_CALL, *openers_and_closers(think_tags))
