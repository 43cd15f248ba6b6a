"""Runs of a coding agent: messages and tool definitions as JSON text, solved or not."""

from __future__ import annotations

from turnmill.errors import Filtered
from turnmill.sources import Pin, PinnedSource, Record, source

COMMIT = "060fca96cf723b2ebab3181e9e59fafd273df3cb"
MARKUP = "</tool_call>"


@source("coderforge")
def coderforge() -> PinnedSource:
    """Runs of a coding agent on issues of real repositories, solved or not; each run's reward is kept."""
    return PinnedSource(
        pin=Pin(
            f"hf://datasets/togethercomputer/CoderForge-Preview@{COMMIT}",
            tuple(f"trajectories/{part}-*.parquet" for part in ("SWE_Rebench", "SWE_Smith", "R2E_Gym")),
        ),
        columns={"id": "trajectory_id"},
        keep_columns=("reward",),
        convert=without_markup,
        tokens=10.29e9,
        licence="none stated",
    )


def without_markup(record: Record) -> Record:
    """The record, unless one of its texts holds the markup that templates write around calls."""
    if MARKUP in str(record.get("messages") or "").lower():
        raise Filtered(f"a message holds {MARKUP} as text: a call that the agent wrote in the wrong place")
    return record
