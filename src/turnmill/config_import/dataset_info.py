"""LLaMA-Factory's `dataset_info.json`: a data set an entry, with its file, formatting, columns and tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from turnmill.config_import.imported import Imported
from turnmill.dialects.openai import SPEAKERS as OPENAI_SPEAKERS
from turnmill.dialects.sharegpt import SPEAKERS as SHAREGPT_SPEAKERS
from turnmill.errors import UnknownName, UsageError, quote

HUBS = ("hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name")
"""Places beyond this machine; each goes before `file_name` there."""

PLACES = frozenset({"file_name", *HUBS})
"""An entry has one of them."""

MEDIA = ("images", "videos", "audios")
PREFERENCES = ("chosen", "rejected", "kto_tag")

ALPACA_COLUMNS = {"prompt": "instruction", "query": "input", "response": "output", "history": "history"}
CHAT_COLUMNS = {"messages": "messages"}
SHARED_COLUMNS = {"system": "system", "tools": "tools"}
"""Its name of a column → ours."""

READ_ANYWAY = {"alpaca": (), "sharegpt": ("conversations", "messages"), "openai": ("messages",)}
"""Columns that a dialect looks for itself."""

TAGS = {"role_tag": "role", "content_tag": "content"}
KEYS_READ_ANYWAY = {"sharegpt": ("from", "value", "role", "content"), "openai": ("role", "content")}
ROLES = {
    "user_tag": "user",
    "assistant_tag": "assistant",
    "observation_tag": "tool",
    "function_tag": "function_call",
    "system_tag": "system",
}
"""Its name of a speaker → ours."""

DEFAULT_COLUMNS = {"prompt": "instruction", "query": "input", "response": "output", "messages": "conversations"}
"""Columns of an entry that maps none."""

SPEAKERS = {"sharegpt": SHAREGPT_SPEAKERS, "openai": OPENAI_SPEAKERS, "alpaca": {}}


def import_dataset_info(entries: dict[str, Any], folder: Path, names: Sequence[str] = ()) -> Imported:
    """A source for each data set that lies in a file here.

    Args:
        entries: name → entry.
        folder: where the JSON file lies; `file_name` is relative to it.
        names: which of them; none = all, those that cannot be read become notes.

    Raises:
        UsageError: no such data set, one that was named and cannot be read, or nothing that can.
    """
    for name in names:
        if name not in entries:
            raise UnknownName("data set", name, entries)
    imported = Imported()
    sources = []
    for name in names or entries:
        reason = _refusal(entries[name])
        if reason is None:
            sources.append(_source(name, entries[name], folder))
            imported.notes += [f"{name}: {note}" for note in _notes(entries[name])]
        elif names:
            raise UsageError(f"{name!r} cannot be read: {reason}")
        else:
            imported.notes.append(f"{name}: not read: {reason}")
    if not sources:
        raise UsageError("no data set that can be read:\n" + "\n".join(imported.notes))
    imported.put("sources", sources)
    return imported


def _refusal(entry: dict[str, Any]) -> str | None:
    """Why an entry is not read, None where it is."""
    columns = entry.get("columns") or {}
    preference = [key for key in PREFERENCES if columns.get(key)]
    hub = next((key for key in HUBS if entry.get(key)), None)
    media = [key for key in MEDIA if columns.get(key)]
    if entry.get("ranking") or preference:
        return f"preference data ({', '.join(preference) or 'ranking'}), not answers to learn from"
    if media:
        return f"{' and '.join(media)}: turnmill reads text only"
    if hub is not None:
        return f"{hub} {quote(entry[hub])} is not on this machine; {_fetched(hub, entry)}"
    if _formatting(entry) not in SPEAKERS:
        return f"formatting {quote(entry['formatting'])}; expected alpaca, sharegpt or openai"
    if not isinstance(entry.get("file_name"), str):
        return "no file_name"
    if _formatting(entry) == "alpaca" and columns and not columns.get("response") and not _is_raw_text(entry):
        return "neither responses nor one column of raw text"
    return None


def _fetched(hub: str, entry: dict[str, Any]) -> str:
    """How its rows come here."""
    if hub == "hf_hub_url":
        return f"give it as a source's data: [hf://datasets/{entry[hub]}] (pip install huggingface_hub)"
    return "fetch it and give its files"


def _is_raw_text(entry: dict[str, Any]) -> bool:
    """Whether the entry is for pre-training: its one column is the prompt."""
    mapped = {name for name, column in (entry.get("columns") or {}).items() if column}
    return _formatting(entry) == "alpaca" and mapped == {"prompt"}


def _formatting(entry: dict[str, Any]) -> str:
    return str(entry.get("formatting", "alpaca"))


def _source(name: str, entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    if _is_raw_text(entry):
        column = entry["columns"]["prompt"]
        given = {"name": name, "data": [str(folder / entry["file_name"])], "mode": "text"}
        return given | ({"columns": {"text": column}} if column != "text" else {})
    dialect = _formatting(entry)
    columns, tags, roles = (dict(found) for found in (_columns(entry), _tags(entry), _roles(entry)))
    source = {"name": name, "data": [str(folder / entry["file_name"])], "dialect": dialect}
    return source | {key: found for key, found in (("columns", columns), ("tags", tags), ("roles", roles)) if found}


def _columns(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Our column → the record's, where our dialect would not find it."""
    dialect = _formatting(entry)
    ours = (ALPACA_COLUMNS if dialect == "alpaca" else CHAT_COLUMNS) | SHARED_COLUMNS
    mapped = entry.get("columns") or DEFAULT_COLUMNS
    for theirs, name in ours.items():
        column = mapped.get(theirs)
        if column and column != name and column not in READ_ANYWAY[dialect]:
            yield name, column


def _tags(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for theirs, name in TAGS.items():
        key = (entry.get("tags") or {}).get(theirs)
        if key and key not in KEYS_READ_ANYWAY.get(_formatting(entry), ()):
            yield name, key


def _roles(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The record's speaker → ours, where our dialect would take it for somebody else."""
    speakers = SPEAKERS[_formatting(entry)]
    for theirs, role in ROLES.items():
        speaker = (entry.get("tags") or {}).get(theirs)
        if speaker and speakers.get(speaker.lower()) != role:
            yield speaker, role


def _notes(entry: dict[str, Any]) -> Iterator[str]:
    columns = entry.get("columns") or {}
    if entry.get("num_samples"):
        yield f"num_samples {entry['num_samples']} is not read; `limit` of the source reads its first rows"
    if _formatting(entry) == "alpaca" and not _is_raw_text(entry):
        yield "instruction and input are joined by a blank line here, by one line break there"
        if columns and not columns.get("query"):
            yield "a column `input`, which is not mapped there, is read here"
