"""One row of a dataset, whole: as it lies in the file, as it was parsed, and the conversation that it is read as."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnmill.conversation import Conversation, Json, recorded_json
from turnmill.files.record import Record
from turnmill.shelf.manifest import Manifest
from turnmill.shelf.reading import opened
from turnmill.shelf.row_facts import conversation_of, source_of

if TYPE_CHECKING:
    from turnmill.verbs.check import Outcome

MAX_RAW_BYTES = 1 << 20
"""Of a row's own bytes that are shown."""
MAX_PARSED_BYTES = 4 << 20
"""A row of more bytes is shown by its first bytes alone."""


def row_at(
    folder: Path, manifest: Manifest, line: int, repairs: Sequence[str] = (), dialect: str | None = None
) -> dict[str, Any]:
    """One row: as it lies in the file, and as it is read.

    Args:
        folder: the dataset's real directory.
        manifest: of the dataset.
        line: on which it stands, from 1; of a file that is not JSON lines, the row.
        repairs: made before it is checked; built-in ones.
        dialect: that it is read as, in place of its own.

    Raises:
        UsageError: no such row, or the file cannot be read.
    """
    with opened(folder, manifest) as data:
        near = data.at(line)
        outcome = data.check(repairs, dialect).outcome(near.record)
        beside = {"line": line, "previous": near.previous, "next": near.next, "dialect": dialect or data.dialect}
    return {**beside, **_recorded(outcome.record), **_read(outcome)}


def _recorded(record: Record) -> dict[str, Any]:
    is_shown = record.value is not None and len(record.raw) <= MAX_PARSED_BYTES
    return {
        "raw": record.raw[:MAX_RAW_BYTES].decode("utf-8", "replace"),
        "bytes": len(record.raw),
        "truncated": len(record.raw) > MAX_RAW_BYTES,
        "source": source_of(record),
        "record": _json(record.value) if is_shown else None,
    }


def _read(outcome: Outcome) -> dict[str, Any]:
    conversation, fault = conversation_of(outcome), outcome.fault
    is_shown = conversation is not None and len(outcome.record.raw) <= MAX_PARSED_BYTES
    return {
        "id": None if outcome.checked is None else outcome.checked.id,
        "code": None if fault is None else fault.code,
        "error": None if fault is None else fault.message,
        "at": None if fault is None else fault.at,
        "stage": None if fault is None else outcome.stage,
        "repairs": [] if conversation is None else conversation.meta.get("repairs", []),
        "conversation": _conversation(conversation) if conversation is not None and is_shown else None,
    }


def _conversation(conversation: Conversation) -> dict[str, Any]:
    return {
        "messages": conversation.messages,
        "tools": _json(list(conversation.tools)),
        "template_kwargs": _json(conversation.template_kwargs),
        "source_id": conversation.source_id,
        "verbatim": {str(at): text for at, text in conversation.verbatim.items()},
    }


def _json(value: Json) -> msgspec.Raw:
    """As recorded: whole numbers of any size, which msgspec does not write."""
    return msgspec.Raw(recorded_json(value).encode("utf-8"))
