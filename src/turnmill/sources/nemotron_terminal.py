"""Runs of Terminus-2 in a terminal: an answer is a JSON object with commands, what they showed the next request."""

from __future__ import annotations

from turnmill.dialects.reasoning import split_think
from turnmill.dialects.terminus import find_reply
from turnmill.errors import Filtered
from turnmill.sources import Pin, PinnedSource, Record, source

COMMIT = "a1667c4ffdadea02a89bffe4f1bb7ca2ff19f8d9"


@source("nemotron-terminal")
def nemotron_terminal() -> PinnedSource:
    """Runs of Terminus-2 on tasks in a terminal, by DeepSeek-V3.2 with its reasoning."""
    return PinnedSource(
        pin=Pin(
            f"hf://datasets/nvidia/Nemotron-Terminal-Corpus@{COMMIT}",
            ("dataset_adapters/*.parquet", "synthetic_tasks/**/*.parquet"),
        ),
        dialect="terminus",
        columns={"id": "trial_name"},
        keep_columns=("run_id", "task", "episode"),
        convert=understood,
        tokens=6.08e9,
        licence="cc-by-4.0",
    )


def understood(record: Record) -> Record:
    """The record, unless the harness could not read one of its answers."""
    for message in record["conversations"]:
        if message.get("role") == "assistant" and not _is_understood(message.get("content") or ""):
            raise Filtered("an answer holds no JSON object with commands: the harness could not act on it")
    return record


def _is_understood(text: str) -> bool:
    block = split_think(text, ("<think>",))
    return find_reply(block.answer if block is not None else text) is not None
