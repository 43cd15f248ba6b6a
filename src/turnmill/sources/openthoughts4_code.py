"""Answers of GLM-5.2 to questions about code, whose think block was opened by the template and is only closed."""

from __future__ import annotations

from turnmill.sources import Pin, PinnedSource, source

COMMIT = "91f275562e041d798254122a7d50632e9d27badb"


@source("openthoughts4-code")
def openthoughts4_code() -> PinnedSource:
    """Four answers of GLM-5.2 to each of 9,168 questions about code; a lone closing tag ends their reasoning."""
    return PinnedSource(
        pin=Pin(
            f"hf://datasets/marin-community/openthoughts4-code-9168-prompts-glm-5.2-n4@{COMMIT}",
            ("data/train-*.parquet",),
        ),
        columns={"id": "source_id"},
        repairs=("reopen-think",),
        keep_columns=("prompt_index", "response_index"),
        tokens=3.341347579e9,
        licence="unverified",
    )
