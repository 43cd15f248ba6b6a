"""Runs of OpenHands on issues of real repositories, solved or not."""

from __future__ import annotations

from turnmill.conversation import Json
from turnmill.errors import Filtered
from turnmill.sources import Pin, PinnedSource, Record, source

COMMIT = "35455389ab51bf5e2306bfd436ef72d0f98bf882"
MARKUP = "<tool_call>"
LITERALS = ("default", "const", "enum", "examples")
"""Keys of a schema whose value is data: a null in it is one that somebody wrote."""


@source("swe-rebench-openhands")
def swe_rebench_openhands() -> PinnedSource:
    """Runs of OpenHands on issues of 1,823 repositories; whether a run resolved its issue is kept."""
    return PinnedSource(
        pin=Pin(f"hf://datasets/nebius/SWE-rebench-openhands-trajectories@{COMMIT}", ("trajectories.parquet",)),
        columns={"id": "trajectory_id", "messages": "trajectory"},
        repairs=("merge-turns",),
        keep_columns=("resolved", "exit_status"),
        convert=with_recorded_tools,
        tokens=2.47e9,
        licence="cc-by-4.0",
    )


def with_recorded_tools(record: Record) -> Record:
    """The record, its tool definitions as they were before a table gave each the keys of all."""
    for message in record["trajectory"]:
        if message.get("role") == "assistant" and MARKUP in (message.get("content") or ""):
            raise Filtered(f"an answer holds {MARKUP} as text: a call that the agent wrote in the wrong place")
    return {**record, "tools": _without_absent_keys(record.get("tools"))}


def _without_absent_keys(value: Json) -> Json:
    if isinstance(value, list):
        return [_without_absent_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item if key in LITERALS else _without_absent_keys(item) for key, item in value.items() if item is not None
    }
