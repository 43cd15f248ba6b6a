"""Tool calls that were recorded as text between `<tool_call>` tags."""

from __future__ import annotations

import re

from turnmill.contract.json_text import JsonFault, strict_json
from turnmill.conversation import Json
from turnmill.repairs import Mending, record_repair
from turnmill.repairs.records import change_messages, content_keys, speaker

DIALECTS = ("openai", "sharegpt")
"""Dialects whose messages have a field for calls."""
ASSISTANTS = ("assistant", "gpt", "chatgpt")
TOOLS = ("tool", "function", "observation")

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_CALLS = re.compile(r"(?:\A|(?<=\n)|(?<=>))[ \t]*(?:<tool_call>(?:(?!</?tool_call>).)*</tool_call>\s*)+\Z", re.DOTALL)
"""All that stands from the first block of a text to its end, where nothing but blocks does."""
_RESULT = re.compile(r"\s*<tool_response>\n?((?:(?!</?tool_response>).)*?)\n?</tool_response>\s*", re.DOTALL)


@record_repair("parse-inline-calls")
def parse_inline_calls(record: dict[str, Json], mending: Mending) -> dict[str, Json]:
    """Make calls of `<tool_call>{"name": …, "arguments": …}</tool_call>` blocks at the end of an assistant's text.

    Text before them stays; where text follows, or a block is no such JSON, the message stays as it is. In a row whose
    calls were parsed, the one `<tool_response>` wrap around a tool's result goes too: templates write it anew. Only in
    dialects with a field for calls (openai, sharegpt).
    """
    if mending.dialect not in DIALECTS:
        return record
    changed = change_messages(record, mending.mapping, lambda message: _with_calls(message, mending))
    if changed is None or changed == record:
        return record
    return change_messages(changed, mending.mapping, lambda message: _unwrapped(message, mending)) or changed


def _with_calls(message: dict[str, Json], mending: Mending) -> dict[str, Json]:
    key = _text_key(message, mending, ASSISTANTS)
    calls_key = mending.mapping.tags.get("tool_calls", "tool_calls")
    if key is None or message.get(calls_key):
        return message
    text: str = message[key]
    blocks = _CALLS.search(text)
    if blocks is None or "<tool_call>" in text[: blocks.start()]:
        return message
    calls = [_call(inside) for inside in _CALL.findall(blocks[0])]
    if any(call is None for call in calls):
        return message
    return {**message, key: text[: blocks.start()].rstrip("\r\n"), calls_key: calls}


def _text_key(message: dict[str, Json], mending: Mending, speakers: tuple[str, ...]) -> str | None:
    """The key of the message's text, None where another speaks or there is not one text."""
    keys = content_keys(message, mending.mapping)
    if len(keys) != 1 or not isinstance(message[keys[0]], str):
        return None
    return keys[0] if speaker(message, mending.mapping) in speakers else None


def _call(text: str) -> dict[str, Json] | None:
    try:
        value = strict_json(text.strip())
    except JsonFault:
        return None
    if not isinstance(value, dict) or set(value) != {"name", "arguments"} or not isinstance(value["name"], str):
        return None
    return {"type": "function", "function": {"name": value["name"], "arguments": value["arguments"]}}


def _unwrapped(message: dict[str, Json], mending: Mending) -> dict[str, Json]:
    key = _text_key(message, mending, TOOLS)
    wrapped = _RESULT.fullmatch(message[key]) if key is not None else None
    return message if key is None or wrapped is None else {**message, key: wrapped[1]}
