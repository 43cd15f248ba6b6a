"""Branches of sessions: whatever the links are, every answer that is reached trains in exactly one row."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from session_lines import META, assistant, call, item, line, output, prompt, result, rows_of, said, use, user
from turnmill.files.record import Record

LINKS = st.lists(
    st.tuples(
        st.sampled_from(["user", "answer", "call", "result", "error"]),
        st.integers(-1, 12),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=12,
)


def log(links: list[tuple[str, int, int, bool]]) -> list[dict]:
    """Events of those kinds, parents, responses and agents; a parent of -1 is none, one that is not there is torn."""
    return [{**event_of(number, *link[:3]), "isSidechain": link[3]} for number, link in enumerate(links)]


def event_of(number: int, kind: str, parent: int, response: int) -> dict:
    uuid, above = f"e{number}", None if parent < 0 else f"e{parent}"
    if kind == "answer":
        return assistant(uuid, above, f"a{number}", response=f"m{response}")
    if kind == "call":
        return assistant(uuid, above, use(f"t{number}"), response=f"m{response}")
    if kind == "error":
        return assistant(uuid, above, "failed", isApiErrorMessage=True)
    return user(uuid, above, result(f"t{parent}") if kind == "result" else "q")


def own_events(rows: list[Record]) -> list[dict]:
    """The events of all rows that a row does not share with an earlier one; of those that leave, too."""
    values = [row.value or json.loads(row.raw) for row in rows]
    return [
        event for value in values for index, event in enumerate(value["events"]) if index not in value.get("shared", ())
    ]


@settings(max_examples=300, deadline=None)
@given(links=LINKS)
def test_every_answer_of_a_log_is_in_one_row(links):
    lines = log(links)
    counts = Counter(event["uuid"] for event in own_events(rows_of("claude-code", lines)))
    answers = {one["uuid"] for one in lines if one["type"] == "assistant" and not one.get("isApiErrorMessage")}
    assert all(counts[uuid] <= 1 for uuid in answers)
    assert answers <= set(counts)


SUMMARY = said("user", "s")["payload"]
STEPS = {
    "undo": line("event_msg", type="thread_rolled_back", num_turns=1),
    "compact": line("compacted", replacement_history=[SUMMARY]),
    "lost": line("compacted", message="s"),
    "context": item("message", role="developer", content=[]),
    "aborted": line("event_msg", type="turn_aborted", reason="interrupted"),
}


def lines_of(number: int, kind: str) -> list[dict]:
    made = {"answer": said("assistant", f"a{number}"), "call": call(f"c{number}"), "output": output(f"c{number - 1}")}
    return prompt(f"q{number}") if kind == "prompt" else [(made | STEPS)[kind]]


@settings(max_examples=300, deadline=None)
@example(kinds=["answer", "context", "prompt", "prompt", "undo", "undo"])
@given(kinds=st.lists(st.sampled_from(["prompt", "answer", "call", "output", *STEPS]), max_size=14))
def test_every_answer_of_a_rollout_is_in_one_row(kinds):
    lines = [META, *prompt("q"), *(made for number, kind in enumerate(kinds) for made in lines_of(number, kind))]
    own = [event for event in own_events(rows_of("codex", lines)) if event.get("role") == "assistant"]
    counts = Counter(event["content"][0]["text"] for event in own)
    assert counts == Counter(f"a{number}" for number, kind in enumerate(kinds) if kind == "answer")
