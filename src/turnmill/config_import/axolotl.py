"""The YAML of Axolotl: its data sets, the model, and what it does to examples; how it trains is not ours to read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from turnmill.config_import.imported import Imported
from turnmill.dialects.sharegpt import SPEAKERS
from turnmill.dialects.weights import WEIGHT_KEYS
from turnmill.errors import UsageError, quote

TELLING = ("base_model", "datasets", "pretraining_dataset")
"""Sections that no other config here has."""

CHAT, ALPACA, TEXT = "chat_template", "alpaca", "completion"
TYPES = {CHAT: {}, "sharegpt": {}, ALPACA: {"dialect": "alpaca"}, TEXT: {"mode": "text"}}
"""Type of a data set, up to its first colon or dot → what the source says here."""

LOCAL = (".jsonl", ".json", ".parquet", ".gz", ".zst")
COLUMNS = {"field_messages": "messages", "field_system": "system", "field_tools": "tools"}
"""Its name of a column → ours."""
READ_ANYWAY = {"messages": ("messages", "conversations", "conversation"), "system": ("system",), "tools": ("tools",)}
TAGS = {"message_field_role": "role", "message_field_content": "content", "message_field_training": "train"}
KEYS_READ_ANYWAY = {"role": ("role", "from"), "content": ("content", "value"), "train": WEIGHT_KEYS}

ELSEWHERE = {"train_on_inputs": False, "train_on_eos": "turn", "train_on_eot": "turn", "roles_to_train": ["assistant"]}
"""What it may train beyond answers and their stops → what ours always is."""
SAME_AS_OURS = {"train_on_eos": (None, "turn", "all"), "train_on_eot": (None, "turn", "all")}


def is_axolotl(tree: dict[str, Any]) -> bool:
    """Whether a config is one of Axolotl's."""
    return any(section in tree for section in TELLING)


def import_axolotl(tree: dict[str, Any]) -> Imported:
    """Our config for theirs.

    Raises:
        UsageError: no data set that can be read.
    """
    imported = Imported()
    _put_model(tree, imported)
    sources = list(_sources(tree, imported))
    if not sources:
        raise UsageError("\n".join(["no data set that can be read", *imported.notes]))
    imported.put("sources", sources)
    _put_whole(tree, imported)
    return imported


def _put_model(tree: dict[str, Any], imported: Imported) -> None:
    model = tree.get("base_model")
    if model:
        imported.put("model.name_or_path", str(model))
        imported.notes.append(
            f"model {quote(model)}: a directory with its tokenizer files; of a hub, fetch those first"
        )
    template = tree.get("chat_template")
    if template not in (None, "tokenizer_default"):
        other = f"chat_template {quote(template)} is not read: the model's own template is used"
        imported.notes.append(f"{other}; --template FILE or chatml is another")


def _put_whole(tree: dict[str, Any], imported: Imported) -> None:
    """What is said of the whole run; left out, it is as it was there."""
    if "seed" in tree:
        imported.put("seed", int(tree["seed"]))
    held_out = tree.get("val_set_size") or 0
    if held_out:
        imported.put("split.fraction" if held_out < 1 else "split.rows", held_out if held_out < 1 else int(held_out))
    if tree.get("sequence_len"):
        imported.put("fit.max_tokens", int(tree["sequence_len"]))
    if tree.get("excess_length_strategy", "drop") == "drop":
        imported.put("fit.overflow", "drop")
    if not tree.get("sample_packing"):
        imported.put("pack.on", False)
    imported.notes += [f"{key} {quote(tree[key])} is not read: {_OURS}" for key in _beyond_ours(tree)]


_OURS = "answers train, each with its stop, and nothing else"


def _beyond_ours(place: dict[str, Any]) -> Iterator[str]:
    """Keys that let something else train than here."""
    for key, ours in ELSEWHERE.items():
        if place.get(key, ours) not in SAME_AS_OURS.get(key, (None, ours)) and place.get(key) != ["gpt"]:
            yield key


def _sources(tree: dict[str, Any], imported: Imported) -> Iterator[dict[str, Any]]:
    names: set[str] = set()
    for entry in [*(tree.get("datasets") or []), *(_pretraining(tree.get("pretraining_dataset")))]:
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            raise UsageError(f"a data set is {quote(entry)}; expected a mapping with a path")
        given = _type(entry)
        name = _free_name(PurePath(entry["path"]).name.partition(".")[0] or "data", names)
        if given is None:
            imported.notes.append(f"{name}: not read: type {quote(entry.get('type'))}")
            continue
        names.add(name)
        imported.notes += [f"{name}: {note}" for note in _notes(entry)]
        yield {"name": name, "data": _data(entry)} | given | _mappings(entry, given)


def _pretraining(value: Any) -> list[Any]:
    """Entries of raw texts."""
    entries = value if isinstance(value, list) else [value] if value else []
    entries = [{"path": entry} if isinstance(entry, str) else entry for entry in entries]
    return [{**entry, "type": TEXT} if isinstance(entry, dict) else entry for entry in entries]


def _type(entry: dict[str, Any]) -> dict[str, str] | None:
    """What the source says for the entry's type, None where it is not read."""
    kind = entry.get("type", CHAT)
    name = kind.replace(":", ".").partition(".")[0] if isinstance(kind, str) else ""
    return TYPES.get(name)


def _free_name(name: str, taken: set[str]) -> str:
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _data(entry: dict[str, Any]) -> list[str]:
    """Files, or URLs of a hub: a path that is no file's is a name there."""
    path: str = entry["path"]
    files = entry.get("data_files") or []
    files = [files] if isinstance(files, str) else list(files)
    is_local = path.endswith(LOCAL) or path.startswith((".", "/", "~")) or "://" in path or "/" not in path
    if path in ("json", "parquet") and files:
        return files
    root = path if is_local else f"hf://datasets/{path}"
    return [f"{root.rstrip('/')}/{file}" for file in files] or [root]


def _mappings(entry: dict[str, Any], given: dict[str, str]) -> dict[str, dict[str, str]]:
    """Columns, message keys and speakers that our dialects would not find themselves."""
    if given.get("mode") == "text":
        field = entry.get("field", "text")
        return {"columns": {"text": field}} if field != "text" else {}
    columns = {ours: entry[key] for key, ours in COLUMNS.items() if entry.get(key)}
    columns = {ours: column for ours, column in columns.items() if column not in READ_ANYWAY[ours]}
    properties = entry.get("message_property_mappings") or {}
    named = {ours: entry.get(key) or properties.get(ours) for key, ours in TAGS.items()}
    tags = {ours: key for ours, key in named.items() if key and key not in KEYS_READ_ANYWAY[ours]}
    roles = {
        speaker: role
        for role, speakers in (entry.get("roles") or {}).items()
        for speaker in ([speakers] if isinstance(speakers, str) else speakers)
        if SPEAKERS.get(speaker.lower()) != role
    }
    mappings: dict[str, dict[str, str]] = {"columns": columns, "tags": tags, "roles": roles}
    return {key: found for key, found in mappings.items() if found}


def _notes(entry: dict[str, Any]) -> Iterator[str]:
    if entry.get("split"):
        yield f"split {quote(entry['split'])} is not read: every file of it is; name files of the split in its place"
    detail = entry.get("message_field_training_detail")
    if detail:
        yield f"{quote(detail)}: parts of a message are not masked here: it trains whole, or not at all (`train`)"
    for key in _beyond_ours(entry):
        yield f"{key} {quote(entry[key])} is not read: {_OURS}"
