"""Turns of one speaker that stand next to each other."""

from __future__ import annotations

import msgspec

from turnmill.conversation import Conversation, Message
from turnmill.repairs import Mending, conversation_repair

BLANK_LINE = "\n\n"


@conversation_repair("merge-turns")
def merge_turns(conversation: Conversation, mending: Mending) -> Conversation:
    """Join user turns, or final answers, that follow one another, by a blank line; never where weights differ.

    Nor where their authors' names differ, and never across reasoning or calls. What is joined has the recorded number
    of the first.
    """
    messages: list[Message] = []
    verbatim = dict(conversation.verbatim)
    for message in conversation.messages:
        if not messages or not _belong_together(messages[-1], message):
            messages.append(message)
            continue
        first = messages[-1]
        messages[-1] = msgspec.structs.replace(first, text=first.text + BLANK_LINE + message.text)
        verbatim.pop(message.recorded, None)
        if first.recorded in verbatim:
            verbatim[first.recorded] += BLANK_LINE + message.text
    return msgspec.structs.replace(conversation, messages=tuple(messages), verbatim=verbatim)


def _belong_together(first: Message, second: Message) -> bool:
    is_turn = first.role == "user" or (first.role == "assistant" and first.channel == "final" and not first.is_call)
    alike = all(getattr(first, field) == getattr(second, field) for field in ("role", "channel", "name", "recipient"))
    return is_turn and alike and first.weight == second.weight
