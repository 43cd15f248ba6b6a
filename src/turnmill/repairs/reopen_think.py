"""Completions whose prompt had opened the think block: only its closing tag was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from turnmill.conversation import Conversation, Message
from turnmill.dialects.reasoning import closer, split_think
from turnmill.repairs import Mending, conversation_repair

QUOTES = tuple("`'\"“”‘’«»")


@conversation_repair("reopen-think")
def reopen_think(conversation: Conversation, mending: Mending) -> Conversation:
    """Make reasoning of what stands before a lone closing think tag at the head of an assistant's turn.

    The tag must be the only one of its kind in the text, no opener may stand in it, and it must end its line, begin
    it, or touch words on both sides: a tag inside a sentence or between quotes is talked about.
    """
    messages: list[Message] = []
    verbatim = dict(conversation.verbatim)
    settled = {message.recorded for message in conversation.messages if message.channel == "analysis"} | set(verbatim)
    for message in conversation.messages:
        opener = None if message.recorded in settled else _missing_opener(message, mending.think_tags)
        if opener is None:
            messages.append(message)
        else:
            messages += _reopened(message, opener)
            verbatim[message.recorded] = f"{opener}\n{message.text}"
    return msgspec.structs.replace(conversation, messages=tuple(messages), verbatim=verbatim)


def _missing_opener(message: Message, openers: Sequence[str]) -> str | None:
    if message.role != "assistant" or message.is_call or message.channel in ("analysis", "text"):
        return None
    text = message.text
    closed = [opener for opener in openers if closer(opener) in text]
    if len(closed) != 1 or any(opener in text for opener in openers) or text.count(closer(closed[0])) > 1:
        return None
    before, _, behind = text.partition(closer(closed[0]))
    return closed[0] if _is_markup(before, behind) else None


def _is_markup(before: str, behind: str) -> bool:
    """Whether the tag between is one, and not talked about."""
    line_before, line_behind = before.rpartition("\n")[2], behind.partition("\n")[0]
    is_quoted = line_before.endswith(QUOTES) or line_behind.startswith(QUOTES)
    if is_quoted or before.count("```") % 2:
        return False
    if not line_before.strip() or not line_behind.strip():
        return True
    return not line_before[-1].isspace() and not line_behind[0].isspace()


def _reopened(message: Message, opener: str) -> Iterator[Message]:
    block = split_think(f"{opener}\n{message.text}", [opener])
    assert block is not None  # it has one opener, and one closer behind it
    if block.reasoning.strip():
        yield msgspec.structs.replace(message, text=block.reasoning, channel="analysis")
    if block.answer.strip():
        yield msgspec.structs.replace(message, text=block.answer)
