"""Chats grown from prompts that people typed, which are withheld and given back by their hash."""

from __future__ import annotations

from typing import Any

from turnmill.errors import Filtered, Rejected
from turnmill.sources import Pin, PinnedSource, Prompts, Record, Withheld, source
from turnmill.sources.nemotron_instruction_following import URL, with_train_turns

WILDCHAT = "hf://datasets/allenai/WildChat-1M@7d6490e462285cf85d91eabea0f9a954fbddcd1f"


@source("nemotron-chat")
def nemotron_chat() -> PinnedSource:
    """Chats grown from prompts that people typed; withheld prompts come from WildChat-1M by their hash."""
    return PinnedSource(
        pin=Pin(URL, ("data/chat.jsonl",)),
        convert_with_prompts=with_prompt,
        withheld=Withheld(Pin(WILDCHAT, ("data/train-*.parquet",)), first_prompt, withheld_prompt),
        tokens=3.5504148e9,
        licence="odc-by, cc-by-4.0 and apache-2.0",
    )


def withheld_prompt(record: Record) -> str | None:
    """Hash of the prompt that a record withholds and WildChat-1M holds."""
    metadata = record.get("metadata") or {}
    if _asked(record) is None or not _seed(metadata).startswith(("wildchat", "allenai/wildchat")):
        return None
    digest: str | None = metadata.get("seed_prompt_sha256")
    return digest


def first_prompt(record: Record) -> list[str]:
    """What a person typed first, of a record of WildChat-1M."""
    asked = _first_of("user", record.get("conversation") or [])
    text = asked.get("content") if asked else None
    return [text] if isinstance(text, str) else []


def with_prompt(record: Record, prompts: Prompts) -> Record:
    """The chat with its first request, and without the system message that is only a place without text."""
    asked = _asked(record)
    if asked is None:
        return with_train_turns(record)
    metadata = record.get("metadata") or {}
    if _seed(metadata).startswith("lmsys"):
        raise Filtered("its prompt is in lmsys-chat-1m, which is not fetched")
    digest = withheld_prompt(record)
    if digest is None:
        raise Rejected("prompt-withheld", "the dataset withholds the prompt and does not say where it is")
    prompt = prompts(digest)
    restored = [{**message, "content": prompt} if message is asked else message for message in record["messages"]]
    return with_train_turns(_without_places(restored, record))


def _without_places(messages: list[Any], record: Record) -> Record:
    """The record with those messages, but for system messages that are only a place, and their truth values."""
    kept = [number for number, message in enumerate(messages) if not _is_only_a_place(message)]
    metadata = dict(record["metadata"])
    turns = metadata.get("train_turns")
    if isinstance(turns, list) and len(turns) == len(messages):
        metadata["train_turns"] = [turns[number] for number in kept]
    return {**record, "messages": [messages[number] for number in kept], "metadata": metadata}


def _asked(record: Record) -> dict[str, Any] | None:
    """The first request, where its text is withheld."""
    first = _first_of("user", record["messages"])
    return first if first is not None and first.get("content") is None else None


def _first_of(role: str, messages: list[Any]) -> dict[str, Any] | None:
    return next((message for message in messages if message.get("role") == role), None)


def _seed(metadata: dict[str, Any]) -> str:
    return str(metadata.get("seed_dataset") or metadata.get("seed_source") or "").lower()


def _is_only_a_place(message: dict[str, Any]) -> bool:
    return message.get("role") == "system" and message.get("content") is None
