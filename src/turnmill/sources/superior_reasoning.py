"""Prompts and answers of gpt-oss-120b, its reasoning in a think block before the answer."""

from __future__ import annotations

from turnmill.errors import Filtered
from turnmill.sources import Pin, PinnedSource, Record, source


@source("superior-reasoning")
def superior_reasoning() -> PinnedSource:
    """Prompts and answers of gpt-oss-120b, its reasoning in a think block before the answer."""
    return PinnedSource(
        pin=Pin("hf://datasets/Alibaba-Apsara/Superior-Reasoning-SFT-gpt-oss-120b@" + "0" * 40, ("**/*.parquet",)),
        convert=chat_of,
        tokens=1e9,
        licence="cc-by-4.0",
    )


def chat_of(record: Record) -> Record:
    """A chat of one exchange."""
    prompt, answer = record.get("input"), record.get("output")
    if not prompt or not answer:
        raise Filtered("the record lacks a prompt or an answer")
    return {"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]}
