"""Where a record that no dialect has read yet keeps its messages, and the texts inside them."""

from __future__ import annotations

from collections.abc import Callable

from turnmill.conversation import Json
from turnmill.dialects import Mapping
from turnmill.dialects.row import LIST_COLUMNS

CONTENT_KEYS = ("content", "value")
"""Spellings of a message's text where the source maps none."""
ROLE_KEYS = ("role", "from")

MessageChange = Callable[[dict[str, Json]], dict[str, Json]]


def change_messages(record: dict[str, Json], mapping: Mapping, change: MessageChange) -> dict[str, Json] | None:
    """The record with each of its messages changed; None where it holds no list of messages."""
    mapped = mapping.columns.get("messages")
    columns = [name for name in ((mapped,) if mapped else LIST_COLUMNS) if isinstance(record.get(name), list)]
    if not columns:
        return None
    changed = dict(record)
    for name in columns:
        changed[name] = [change(message) if isinstance(message, dict) else message for message in record[name]]
    return changed


def content_keys(message: dict[str, Json], mapping: Mapping) -> list[str]:
    """The keys of the message that hold its text."""
    mapped = mapping.tags.get("content")
    return [key for key in ((mapped,) if mapped else CONTENT_KEYS) if key in message]


def speaker(message: dict[str, Json], mapping: Mapping) -> str:
    """Who speaks, in our roles where the source maps one, else as recorded in lower case; empty for nobody."""
    mapped = mapping.tags.get("role")
    recorded = next((message[key] for key in ((mapped,) if mapped else ROLE_KEYS) if message.get(key)), "")
    if not isinstance(recorded, str):
        return ""
    return mapping.roles.get(recorded, recorded.lower())
