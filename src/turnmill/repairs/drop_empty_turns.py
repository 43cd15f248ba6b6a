"""Turns that say nothing."""

from __future__ import annotations

import msgspec

from turnmill.conversation import Conversation, Message
from turnmill.repairs import Mending, conversation_repair


@conversation_repair("drop-empty-turns")
def drop_empty_turns(conversation: Conversation, mending: Mending) -> Conversation:
    """Leave out user and assistant texts that are empty or white space.

    A blank system stays, because some templates put a default in its place; so does a tool's blank result. The turns
    around a dropped one may then follow one another: `merge-turns` behind this joins them.
    """
    messages = tuple(message for message in conversation.messages if not _is_empty(message))
    left = {message.recorded for message in messages}
    verbatim = {index: text for index, text in conversation.verbatim.items() if index in left}
    return msgspec.structs.replace(conversation, messages=messages, verbatim=verbatim)


def _is_empty(message: Message) -> bool:
    return message.role in ("user", "assistant") and not message.is_call and not message.text.strip()
