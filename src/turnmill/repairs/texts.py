"""Texts of a conversation changed alike, with the recorded originals that stand beside them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from turnmill.conversation import Conversation, Message


def is_utterance(message: Message) -> bool:
    """Whether somebody speaks here: no call's arguments, no tool's result."""
    return message.role != "tool" and not message.is_call


def is_text(message: Message) -> bool:
    """Whether this is text, a tool's result too: no call's arguments."""
    return not message.is_call


def change_texts(
    conversation: Conversation, change: Callable[[str], str], takes: Callable[[Message], bool]
) -> Conversation:
    """The conversation with `change` made to the texts that `takes` says, and to every recorded original."""
    messages = tuple(
        with_text(message, change(message.text)) if takes(message) else message for message in conversation.messages
    )
    verbatim = {index: change(text) for index, text in conversation.verbatim.items()}
    return msgspec.structs.replace(conversation, messages=messages, verbatim=verbatim)


def with_text(message: Message, text: str) -> Message:
    """The message with another text."""
    return message if text == message.text else msgspec.structs.replace(message, text=text)
