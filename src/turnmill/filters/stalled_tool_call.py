"""Conversations that call the same tool with the same arguments three times over and get the same result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from turnmill.conversation import Checked, Message, canonical_json
from turnmill.errors import Rejected, quote
from turnmill.filters import row_filter
from turnmill.options import Filter

REPEATS = 3


class _Said(NamedTuple):
    position: int
    message: Message

    @property
    def call(self) -> tuple[str | None, bytes]:
        """What makes two calls the same: the tool, and the arguments in any key order (1 and 1.0 differ)."""
        return self.message.recipient, canonical_json(json.loads(self.message.text))


@row_filter("stalled-tool-call")
def stalled_tool_call(conversation: Checked, options: Filter) -> Rejected | None:
    """Refuse a conversation that repeats a call three times one after another without a new result.

    Within what follows one user message: three calls in a row to one tool with equal arguments, each made after the
    result of the one before, where the first two results are equal text. The third may be unanswered.
    """
    if sum(message.is_call for message in conversation.messages) < REPEATS:
        return None
    for calls, replies in _scopes(conversation):
        stalled = _third_repeat(calls, replies)
        if stalled is not None:
            message = f"{quote(stalled.recipient)} is called a third time with the arguments and result of before"
            return Rejected("stalled-tool-call", message, at=stalled.recorded)
    return None


def _scopes(conversation: Checked) -> Iterator[tuple[list[_Said], list[_Said]]]:
    """Calls and results between user messages, each with its position."""
    calls: list[_Said] = []
    replies: list[_Said] = []
    for position, message in enumerate(conversation.messages):
        if message.role == "user":
            yield calls, replies
            calls, replies = [], []
        elif message.is_call:
            calls.append(_Said(position, message))
        elif message.role == "tool":
            replies.append(_Said(position, message))
    yield calls, replies


def _third_repeat(calls: list[_Said], replies: list[_Said]) -> Message | None:
    for number in range(min(len(calls) - 2, len(replies) - 1)):
        first, second, third = calls[number : number + 3]
        reply, again = replies[number : number + 2]
        in_turn = first.position < reply.position < second.position < again.position < third.position
        if in_turn and reply.message.text == again.message.text and first.call == second.call == third.call:
            return third.message
    return None
