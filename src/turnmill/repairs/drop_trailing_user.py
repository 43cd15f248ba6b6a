"""Questions at the end that nobody answered."""

from __future__ import annotations

import msgspec

from turnmill.conversation import Conversation
from turnmill.repairs import Mending, conversation_repair


@conversation_repair("drop-trailing-user")
def drop_trailing_user(conversation: Conversation, mending: Mending) -> Conversation:
    """End the conversation before the user turns that nobody answered; a row without an answer stays as it is."""
    end = len(conversation.messages)
    while end and conversation.messages[end - 1].role == "user":
        end -= 1
    messages = conversation.messages[:end]
    if not any(message.role == "assistant" for message in messages):
        return conversation
    return msgspec.structs.replace(conversation, messages=messages)
