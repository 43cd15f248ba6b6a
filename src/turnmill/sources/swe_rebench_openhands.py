"""Runs of OpenHands on issues of real repositories, solved or not."""

from __future__ import annotations

from turnmill.errors import Filtered
from turnmill.sources import Pin, PinnedSource, Record, source

COMMIT = "35455389ab51bf5e2306bfd436ef72d0f98bf882"
MARKUP = "<tool_call>"


@source("swe-rebench-openhands")
def swe_rebench_openhands() -> PinnedSource:
    """Runs of OpenHands on issues of 1,823 repositories; whether a run resolved its issue is kept."""
    return PinnedSource(
        pin=Pin(f"hf://datasets/nebius/SWE-rebench-openhands-trajectories@{COMMIT}", ("trajectories.parquet",)),
        columns={"id": "trajectory_id", "messages": "trajectory"},
        repairs=("merge-turns",),
        keep_columns=("resolved", "exit_status"),
        convert=without_markup,
        tokens=2.47e9,
        licence="cc-by-4.0",
    )


def without_markup(record: Record) -> Record:
    """The record, unless the agent wrote the markup of a call into an answer."""
    for message in record["trajectory"]:
        if message.get("role") == "assistant" and MARKUP in (message.get("content") or ""):
            raise Filtered(f"an answer holds {MARKUP} as text: a call that the agent wrote in the wrong place")
    return record
