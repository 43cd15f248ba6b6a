"""OpenAI chat messages: `messages` with role and content, tool calls, and whatever servers added to them."""

from __future__ import annotations

from itertools import count

from turnmill.conversation import FUNCTIONS, Conversation, Json, Message
from turnmill.dialects import Reading, dialect, writer
from turnmill.dialects.row import read_chat
from turnmill.dialects.turns import Manner, Speaker
from turnmill.dialects.writing import Said, enveloped_tools, said_together, shared_columns

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


@writer("openai")
def write_openai(conversation: Conversation) -> dict[str, Json]:
    """Messages with tool_calls (ids in order, arguments as JSON text), reasoning_content and weight."""
    record: dict[str, Json] = {"messages": _messages(conversation)}
    return record | enveloped_tools(conversation) | shared_columns(conversation)


def _messages(conversation: Conversation) -> list[Json]:
    numbers, waiting = count(1), list[str]()
    written: list[Json] = []
    for said in said_together(conversation):
        entry: dict[str, Json] = {"role": said.role, "content": said.text or ("" if not said.calls else None)}
        if said.reasoning is not None:
            entry["reasoning_content"] = said.reasoning
        if said.calls:
            ids = [f"call_{next(numbers)}" for _ in said.calls]
            entry["tool_calls"] = [_call(call, made) for call, made in zip(said.calls, ids, strict=True)]
            waiting = waiting + ids
        if said.role == "tool":
            entry["tool_call_id"] = waiting.pop(0)
        written.append(entry | _author_and_weight(said))
    return written


def _call(call: Message, made_id: str) -> Json:
    name = (call.recipient or "").removeprefix(FUNCTIONS)
    return {"id": made_id, "type": "function", "function": {"name": name, "arguments": call.text}}


def _author_and_weight(said: Said) -> dict[str, Json]:
    found = {"name": said.name, "weight": said.weight}
    return {key: value for key, value in found.items() if value is not None}
