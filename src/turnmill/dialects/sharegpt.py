"""ShareGPT conversations: `conversations` with from and value, or their role and content twins."""

from __future__ import annotations

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.openai import SPEAKERS as OPENAI_SPEAKERS
from turnmill.dialects.row import read_chat
from turnmill.dialects.turns import Manner, Speaker

SPEAKERS: dict[str, Speaker] = {
    **OPENAI_SPEAKERS,
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "function_call": "function_call",
    "tool_call": "function_call",
    "observation": "tool",
    "tool_response": "tool",
}

MANNER = Manner(SPEAKERS, role_keys=("from",), content_keys=("value",))


@dialect("sharegpt")
def sharegpt(record: dict[str, Json], reading: Reading) -> Conversation:
    """ShareGPT conversations: from and value (human, gpt, function_call, observation) or role and content."""
    return read_chat(record, reading, MANNER, "conversations", "messages", "conversation")
