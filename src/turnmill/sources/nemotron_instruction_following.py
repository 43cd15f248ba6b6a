"""Chats that follow instructions, with a truth value a message of whether it is to be learned."""

from __future__ import annotations

from turnmill.sources import Pin, PinnedSource, Record, source

COMMIT = "be3b3e04ef605ac9d3f8f35b9d5a632f4a3a3402"
URL = f"hf://datasets/nvidia/Nemotron-SFT-Instruction-Following-Chat-v3@{COMMIT}"


@source("nemotron-instruction-following")
def nemotron_instruction_following() -> PinnedSource:
    """Chats whose answers follow instructions; only the turns that are marked for it are trained."""
    return PinnedSource(
        pin=Pin(URL, ("data/instruction_following.jsonl",)),
        convert=with_train_turns,
        tokens=0.721726105e9,
        licence="odc-by, cc-by-4.0 and apache-2.0",
    )


def with_train_turns(record: Record) -> Record:
    """The messages, and which of them are trained: the list stands in the record's metadata."""
    metadata = record.get("metadata") or {}
    turns = metadata.get("train_turns")
    return {"uuid": record.get("uuid"), "messages": record["messages"], "train_turns": turns}
