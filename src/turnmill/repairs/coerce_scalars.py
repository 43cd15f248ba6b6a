"""Numbers and truth values where text belongs."""

from __future__ import annotations

import json

from turnmill.conversation import Json
from turnmill.dialects.content import TEXT_TYPES
from turnmill.repairs import Mending, record_repair
from turnmill.repairs.records import change_messages, content_keys

TEXT_COLUMNS = (
    "instruction",
    "input",
    "output",
    "prompt",
    "response",
    "completion",
    "question",
    "answer",
    "context",
    "text",
)
"""Columns that hold text in dialects without a list of messages."""


@record_repair("coerce-scalars")
def coerce_scalars(record: dict[str, Json], mending: Mending) -> dict[str, Json]:
    """Write a number or a truth value that stands where text belongs as JSON text: 42 as `42`, true as `true`.

    Contents of messages and text parts; in rows without a message list the text columns and the history; the system
    column. Null, lists and objects stay, and are read or refused as ever.
    """
    mapping = mending.mapping
    changed = change_messages(record, mapping, lambda message: _with_text_contents(message, mending))
    columns = ["system"]
    if changed is None:
        changed = dict(record)
        columns += TEXT_COLUMNS
    for column in columns:
        name = mapping.columns.get(column, column)
        if name in changed:
            changed[name] = _as_text(changed[name])
    history = mapping.columns.get("history", "history")
    if isinstance(changed.get(history), list):
        changed[history] = [_pair_as_text(pair) for pair in changed[history]]
    return changed


def _with_text_contents(message: dict[str, Json], mending: Mending) -> dict[str, Json]:
    return {**message, **{key: _content(message[key]) for key in content_keys(message, mending.mapping)}}


def _content(value: Json) -> Json:
    return [_part(part) for part in value] if isinstance(value, list) else _as_text(value)


def _part(part: Json) -> Json:
    if not isinstance(part, dict) or part.get("type") not in TEXT_TYPES:
        return part
    return {**part, **{key: _as_text(part[key]) for key in ("text", "value") if key in part}}


def _pair_as_text(pair: Json) -> Json:
    return [_as_text(text) for text in pair] if isinstance(pair, list) else pair


def _as_text(value: Json) -> Json:
    return json.dumps(value) if isinstance(value, (bool, int, float)) else value
