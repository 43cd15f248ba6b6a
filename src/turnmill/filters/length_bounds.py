"""Conversations that say too little or too much."""

from __future__ import annotations

from turnmill.conversation import Checked
from turnmill.errors import Rejected
from turnmill.filters import row_filter
from turnmill.filters.answers import answers
from turnmill.options import Filter


@row_filter("length-bounds")
def length_bounds(conversation: Checked, options: Filter) -> Rejected | None:
    """Refuse a conversation with too few or too many turns or characters, in all or in an answer; off until set."""
    bounds = options.length_bounds
    turns = _assistant_turns(conversation)
    characters = sum(len(message.text) for message in conversation.messages)
    fault = _outside(turns, bounds.min_turns, bounds.max_turns, "the conversation has {} assistant turns")
    fault = fault or _outside(
        characters, bounds.min_characters, bounds.max_characters, "the conversation has {} characters"
    )
    if fault is not None:
        return Rejected("length-bounds", fault)
    for message in answers(conversation):
        least, most = bounds.min_answer_characters, bounds.max_answer_characters
        fault = _outside(len(message.text), least, most, "an answer has {} characters")
        if fault is not None:
            return Rejected("length-bounds", fault, at=message.recorded)
    return None


def _assistant_turns(conversation: Checked) -> int:
    roles = [message.role for message in conversation.messages]
    return sum(role == "assistant" and before != "assistant" for before, role in zip(["", *roles], roles, strict=False))


def _outside(size: int, least: int | None, most: int | None, what: str) -> str | None:
    if least is not None and size < least:
        return f"{what.format(f'{size:,}')}; expected at least {least:,}"
    if most is not None and size > most:
        return f"{what.format(f'{size:,}')}; expected at most {most:,}"
    return None
