"""OpenAI chat messages: `messages` with role and content, tool calls, and whatever servers added to them."""

from __future__ import annotations

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.row import read_chat
from turnmill.dialects.turns import Manner, Speaker

SPEAKERS: dict[str, Speaker] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


MANNER = Manner(SPEAKERS)


@dialect("openai")
def openai(record: dict[str, Json], reading: Reading) -> Conversation:
    """OpenAI chat messages: `messages` with role and content, tool_calls, reasoning, weights."""
    return read_chat(record, reading, MANNER, "messages", "conversation")
