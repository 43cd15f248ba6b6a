"""Runs of OpenHands by several models: each tool definition as JSON text, results in the order of their calls."""

from __future__ import annotations

from collections import deque

from turnmill.sources import Pin, PinnedSource, Record, source

COMMIT = "f967cba3312573981a47fd7a7b80029b53909b5f"


@source("open-swe-traces")
def open_swe_traces() -> PinnedSource:
    """Runs of OpenHands by four models on issues in many languages; whether a run resolved its issue is kept."""
    return PinnedSource(
        pin=Pin(f"hf://datasets/nvidia/Open-SWE-Traces@{COMMIT}", ("data/openhands/**/*.parquet",)),
        columns={"id": "trajectory_id"},
        keep_columns=("resolved",),
        convert=with_call_ids,
        tokens=13.323e9,
        licence="cc-by-4.0",
    )


def with_call_ids(record: Record) -> Record:
    """The record with the ids that its export left out: results follow their calls in order."""
    waiting: deque[str] = deque()
    messages = []
    for place, message in enumerate(record["messages"]):
        linked = dict(message)
        if message.get("tool_calls"):
            linked["tool_calls"] = [
                {**call, "id": f"call_{place}_{number}"} for number, call in enumerate(message["tool_calls"])
            ]
            waiting.extend(call["id"] for call in linked["tool_calls"])
        elif message.get("role") == "tool" and waiting:
            linked["tool_call_id"] = waiting.popleft()
        messages.append(linked)
    return {**record, "messages": messages}
