"""The demonstration rows of LLaMA-Factory's new format: contents in parts, a loss weight a message."""

from __future__ import annotations

from turnmill.errors import Filtered
from turnmill.sources import Pin, PinnedSource, Record, source

COMMIT = "d0a3289f138a576c39f7392de866850771b13bd2"
SHA256 = "a69bf0e0cc728835b3923ea41d328b5a28f317cf20401202cfe550ded4d86642"
PLACEHOLDERS = ("{{name}}", "{{author}}")


@source("llamafactory-parts")
def llamafactory_parts() -> PinnedSource:
    """Demonstration rows of LLaMA-Factory: contents in parts, and a loss weight a message."""
    return PinnedSource(
        pin=Pin(
            f"https://raw.githubusercontent.com/hiyouga/LLaMA-Factory/{COMMIT}/data",
            ("v1_sft_demo.jsonl",),
            {"v1_sft_demo.jsonl": SHA256},
        ),
        convert=without_placeholders,
        tokens=77_421,  # as SmolLM2 counts them in chatml
        licence="apache-2.0",
    )


def without_placeholders(record: Record) -> Record:
    """The record, unless somebody was to write a name into it first."""
    for message in record["messages"]:
        for part in message["content"]:
            if any(placeholder in part["value"] for placeholder in PLACEHOLDERS):
                raise Filtered("an answer holds a placeholder for a name that nobody filled in")
    return record
