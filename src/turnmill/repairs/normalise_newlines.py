"""Line ends of other systems inside texts."""

from __future__ import annotations

from turnmill.conversation import Conversation
from turnmill.repairs import Mending, conversation_repair
from turnmill.repairs.texts import change_texts, is_text


@conversation_repair("normalise-newlines")
def normalise_newlines(conversation: Conversation, mending: Mending) -> Conversation:
    """Write CR LF and lone CR as LF in every text, results of tools too; arguments of calls stay as recorded."""
    return change_texts(conversation, _with_line_feeds, is_text)


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
