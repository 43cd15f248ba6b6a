"""Messages as short lists, the form in which `check --json` shows a conversation."""

from __future__ import annotations

import json

from turnmill.conversation import FUNCTIONS, Conversation, Json, Message


def neutral_turns(conversation: Conversation) -> list[list[Json]]:
    """One list a message: `[kind, text]`, `["call", tool, arguments]` or `["result", tool, text]`.

    The kind of a text is its role, an assistant's its channel (`analysis`, `commentary`, `final`).
    """
    return [_neutral(message) for message in conversation.messages]


def _neutral(message: Message) -> list[Json]:
    if message.is_call:
        return ["call", _tool(message.recipient), json.loads(message.text)]
    if message.role == "tool":
        return ["result", _tool(message.name), message.text]
    kind = message.channel if message.role == "assistant" else message.role
    return [kind, message.text]


def _tool(name: str | None) -> str:
    return (name or "").removeprefix(FUNCTIONS)
