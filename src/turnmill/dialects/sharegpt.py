"""ShareGPT conversations: `conversations` with from and value, or their role and content twins."""

from __future__ import annotations

import json

from turnmill.conversation import FUNCTIONS, Conversation, Json, Message, recorded_json
from turnmill.dialects import Reading, dialect, writer
from turnmill.dialects.openai import SPEAKERS as OPENAI_SPEAKERS
from turnmill.dialects.row import read_chat
from turnmill.dialects.turns import Manner, Speaker
from turnmill.dialects.writing import Said, enveloped_tools, said_together, shared_columns, with_think_block

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


WRITTEN_SPEAKERS = {"user": "human", "assistant": "gpt", "tool": "observation"}


@writer("sharegpt")
def write_sharegpt(conversation: Conversation) -> dict[str, Json]:
    """Conversations of from and value: reasoning in a think block, calls as JSON text of a function_call turn."""
    turns = [turn for said in said_together(conversation) for turn in _turns(said)]
    tools = enveloped_tools(conversation)
    if tools:
        tools = {"tools": recorded_json(tools["tools"])}
    return {"conversations": turns, **tools, **shared_columns(conversation)}


def _turns(said: Said) -> list[Json]:
    """A text, and calls as a turn of their own; reasoning leads whichever comes first."""
    more: dict[str, Json] = {} if said.weight is None else {"weight": said.weight}
    if said.name is not None and said.role != "tool":
        more["name"] = said.name
    values: list[tuple[str, str]] = []
    if said.text is not None or not said.calls:
        values.append((WRITTEN_SPEAKERS.get(said.role, said.role), said.text or ""))
    if said.calls:
        calls = [_call(call) for call in said.calls]
        values.append(("function_call", recorded_json(calls[0] if len(calls) == 1 else calls)))
    speaker, value = values[0]
    values[0] = (speaker, with_think_block(value, said.reasoning))
    return [{"from": speaker, "value": value, **more} for speaker, value in values]


def _call(call: Message) -> Json:
    return {"name": (call.recipient or "").removeprefix(FUNCTIONS), "arguments": json.loads(call.text)}
