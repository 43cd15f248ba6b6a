"""What filters look at: the answers that a model would learn."""

from __future__ import annotations

import re
from collections.abc import Iterator

from turnmill.conversation import Conversation, Message

_CODE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[ \t]*$|\Z)|(?<!`)`[^`\n]+`(?!`)", re.DOTALL | re.MULTILINE)


def answers(conversation: Conversation) -> Iterator[Message]:
    """Final and raw texts, without those whose recorded weight is 0: nothing is learned from them."""
    for message in conversation.messages:
        if message.role == "assistant" and message.channel in ("final", "text") and message.weight != 0:
            yield message


def without_code(text: str) -> str:
    """The text with blocks and pieces of code left out: code says what it must."""
    return _CODE.sub(" ", text) if "`" in text or "~~~" in text else text
