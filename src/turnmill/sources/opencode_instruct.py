"""Questions about code and one answer each, with how many of an answer's tests passed."""

from __future__ import annotations

from turnmill.sources import Pin, PinnedSource, Record, source

COMMIT = "8f3ba5bafe4d6e8db46082cf7ae6741bc370604d"


@source("opencode-instruct")
def opencode_instruct() -> PinnedSource:
    """Questions about code with one answer each; the share of its tests that an answer passed is kept."""
    return PinnedSource(
        pin=Pin(f"hf://datasets/nvidia/OpenCodeInstruct@{COMMIT}", ("data/train-*.parquet",)),
        dialect="prompt-response",
        columns={"prompt": "input", "response": "output"},
        keep_columns=("average_test_score",),
        convert=answered,
        tokens=2.5e9,  # 5,000,000 rows of about 500: an estimate
        licence="cc-by-4.0",
    )


def answered(record: Record) -> Record:
    """The record without the tests that its answer was run against, which are as long as itself."""
    return {key: record.get(key) for key in ("id", "input", "output", "average_test_score")}
