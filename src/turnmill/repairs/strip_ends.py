"""White space at the ends of texts."""

from __future__ import annotations

from turnmill.conversation import Conversation
from turnmill.repairs import Mending, conversation_repair
from turnmill.repairs.texts import change_texts, is_utterance


@conversation_repair("strip-ends")
def strip_ends(conversation: Conversation, mending: Mending) -> Conversation:
    """Take white space off both ends of what systems, users and assistants say; results of tools stay."""
    return change_texts(conversation, str.strip, is_utterance)
