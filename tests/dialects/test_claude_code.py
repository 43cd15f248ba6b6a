"""Claude Code sessions: lines of a log, and of a printed stream, to conversations."""

from __future__ import annotations

from collections import Counter

import pytest

from session_lines import assistant, event, outcomes, result, rows_of, side, text, thinking, use, user
from turnmill.dialects import Reading, convert, dialects

NAME = "claude-code"
ASKED, ANSWERED = ["user", "q"], ["final", "a"]
CALL, RESULT = ["call", "Bash", {"command": "ls"}], ["result", "Bash", "out"]
START = [user("u1", None, "q")]


def read(*lines, counts: Counter[str] | None = None):
    return outcomes(NAME, lines, counts)


def metas(*lines) -> list[dict]:
    rows = [convert(row.value, dialects.get(NAME), Reading()) for row in rows_of(NAME, lines)]
    return [{"id": row.source_id, **row.meta} for row in rows]


def test_the_lines_of_a_response_are_one_turn_with_its_results():
    lines = [
        *START,
        assistant("a1", "u1", thinking("r"), response="m1"),
        assistant("a2", "a1", "Look.", response="m1"),
        assistant("a3", "a2", use("t1"), response="m1"),
        user("r1", "a3", result("t1"), toolUseResult={"stdout": "out"}),
        assistant("a4", "r1", "a"),
    ]
    assert read(*lines) == [[ASKED, ["analysis", "r"], ["commentary", "Look."], CALL, RESULT, ANSWERED]]


def test_the_lines_of_a_response_are_read_by_their_links():
    lines = [*START, assistant("a1", "u1", "one ", response="m1"), assistant("a2", "a1", "two", response="m1")]
    lines += [assistant("a3", "a2", " three", response="m1")]
    assert read(*lines) == read(*lines[::-1]) == read(lines[2], lines[0], lines[3], lines[1])
    assert read(*lines) == [[ASKED, ["final", "one two three"]]]


def test_results_of_parallel_calls_hang_on_their_calls_and_are_no_branches():
    lines = [
        *START,
        assistant("a1", "u1", use("t1"), response="m1"),
        user("r1", "a1", result("t1", "one")),
        assistant("a2", "a1", use("t2"), response="m1"),
        user("r2", "a2", result("t2", "two")),
        assistant("a3", "r2", "a"),
    ]
    results = [["result", "Bash", "one"], ["result", "Bash", "two"]]
    assert read(*lines) == [[ASKED, CALL, CALL, *results, ANSWERED]]


def test_a_branch_is_a_row_and_what_it_shares_trains_once():
    lines = [*START, assistant("a1", "u1", "a"), user("u2", "a1", "more"), assistant("a2", "u2", "b")]
    lines += [user("u3", "a1", "other"), assistant("a3", "u3", "c")]
    first, second = rows_of(NAME, lines)
    assert (first.source_line, second.source_line) == (1, 5)
    rows = [convert(row.value, dialects.get(NAME), Reading()) for row in (first, second)]
    assert [[message.weight for message in row.messages if message.role == "assistant"] for row in rows] == [
        [None, None],
        [0.0, None],
    ]
    assert [row.meta.get("branch") for row in rows] == ["abandoned", None]
    assert [row.source_id for row in rows] == ["s1@a2", "s1"]


def test_a_branch_that_nobody_answered_is_none():
    counts: Counter[str] = Counter()
    lines = [*START, user("u2", "u1", "again"), user("u3", "u1", "and again"), assistant("a1", "u3", "a")]
    assert read(*lines, counts=counts) == [[["user", "q\n\nand again"], ANSWERED]]
    assert counts["read/branch-without-answer"] == 1


def test_a_sub_agent_in_the_same_file_is_a_row_that_names_its_call():
    lines = [
        *START,
        assistant("a1", "u1", use("t1", "Task", prompt="do")),
        *side([user("s1", None, "do"), assistant("s2", "s1", "done")]),
        user("r1", "a1", result("t1", "done"), toolUseResult={"agentId": "ab12", "status": "completed"}),
        assistant("a2", "r1", "a"),
    ]
    main, agent = metas(*lines)
    assert main == {"id": "s1", "session": "s1"}
    assert agent == {"id": "s1/ab12", "session": "s1", "agent": "ab12", "parent": "s1", "parent_call": "t1"}
    assert read(*lines)[1] == [["user", "do"], ["final", "done"]]


def test_a_sub_agents_own_file_is_read_alike():
    assert metas(*side([user("s1", None, "do"), assistant("s2", "s1", "done")]))[0]["id"] == "s1/ab12"


def test_a_compaction_begins_a_new_conversation():
    boundary = event("system", "b1", None, subtype="compact_boundary", logicalParentUuid="a1", content="Compacted")
    lines = [*START, assistant("a1", "u1", "a"), boundary]
    lines += [
        user("u2", "b1", "Summary.", isCompactSummary=True),
        user("u3", "u2", "go on"),
        assistant("a2", "u3", "b"),
    ]
    assert read(*lines) == [[ASKED, ANSWERED], [["user", "Summary.\n\ngo on"], ["final", "b"]]]
    assert [row["id"] for row in metas(*lines)] == ["s1", "s1@u2"]


@pytest.mark.parametrize(
    "kept",
    [
        {"preservedSegment": {"headUuid": "u2", "anchorUuid": "c1", "tailUuid": "a2"}},
        {"preservedMessages": {"anchorUuid": "c1", "uuids": ["u2", "a2"]}},
    ],
)
def test_messages_that_a_compaction_kept_stand_behind_its_summary_untrained(kept):
    boundary = event("system", "b1", None, subtype="compact_boundary", compactMetadata={"trigger": "auto", **kept})
    lines = [*START, assistant("a1", "u1", "a"), user("u2", "a1", "more"), assistant("a2", "u2", "b"), boundary]
    lines += [user("c1", "b1", "Summary.", isCompactSummary=True), user("u3", "a2", "on"), assistant("a3", "u3", "c")]
    _, after = rows_of(NAME, lines)
    row = convert(after.value, dialects.get(NAME), Reading())
    assert [(message.text, message.weight) for message in row.messages] == [
        ("Summary.\n\nmore", None),
        ("b", 0.0),
        ("on", None),
        ("c", None),
    ]


def test_what_the_harness_answers_itself_is_dropped():
    counts: Counter[str] = Counter()
    failed = assistant("a1", "u1", "API Error: 529", isApiErrorMessage=True)
    lines = [*START, failed, user("u2", "a1", "again"), assistant("a2", "u2", "a")]
    assert read(*lines, counts=counts) == [[["user", "q\n\nagain"], ANSWERED]]
    assert counts["read/synthetic-answer-dropped"] == 1


def test_an_interrupted_run_ends_with_its_last_call():
    lines = [*START, assistant("a1", "u1", use("t1")), user("r1", "a1", result("t1", "no", is_error=True))]
    lines += [user("u2", "r1", text("[Request interrupted by user for tool use]"))]
    assert read(*lines) == [[ASKED, CALL]]
    assert metas(*lines)[0]["ended"] == "interrupted"


def test_one_of_two_calls_answered_at_the_end_leaves_both_unanswered():
    lines = [*START, assistant("a1", "u1", use("t1"), use("t2")), user("r1", "a1", result("t1"))]
    assert read(*lines) == [[ASKED, CALL, CALL]]


def test_reasoning_that_was_taken_out_is_counted():
    counts: Counter[str] = Counter()
    blocks = [{"type": "redacted_thinking", "data": "x"}, {"type": "thinking", "thinking": "", "signature": "c"}]
    assert read(*START, assistant("a1", "u1", *blocks, "a"), counts=counts) == [[ASKED, ANSWERED]]
    assert counts["read/reasoning-withheld"] == 2


def test_prompts_and_commands_typed_meanwhile_are_the_users():
    queued = event("attachment", "q1", "r1", attachment={"type": "queued_command", "prompt": "faster"})
    command = event("system", "l1", "q1", subtype="local_command", content="<command-name>/cost</command-name>")
    lines = [*START, assistant("a1", "u1", use("t1")), user("r1", "a1", result("t1")), queued, command]
    expected = ["user", "faster\n\n<command-name>/cost</command-name>"]
    assert read(*lines, assistant("a2", "l1", "a")) == [[ASKED, CALL, RESULT, expected, ANSWERED]]


def test_references_to_tools_are_no_text_of_a_result():
    counts: Counter[str] = Counter()
    found = result("t1", [{"type": "tool_reference", "tool_name": "Grep"}])
    lines = [*START, assistant("a1", "u1", use("t1")), user("r1", "a1", found), assistant("a2", "r1", "a")]
    assert read(*lines, counts=counts) == [[ASKED, CALL, ["result", "Bash", ""], ANSWERED]]
    assert counts["read/tool-references-dropped"] == 1


def test_a_picture_rejects_the_row():
    assert read(user("u1", None, {"type": "image", "source": {}}), assistant("a1", "u1", "a")) == ["non-text-content"]


def test_a_printed_stream_is_read_in_order():
    init = {"type": "system", "subtype": "init", "session_id": "s2", "tools": ["Bash"], "uuid": "i"}
    frame = {"session_id": "s2", "parent_tool_use_id": None}
    answer = {"role": "assistant", "id": "m1", "content": [use("t1")]}
    lines = [init, {"type": "user", "message": {"role": "user", "content": "q"}, **frame}]
    lines += [{"type": "assistant", "message": answer, **frame}]
    lines += [{"type": "user", "message": {"role": "user", "content": "do"}, **frame, "parent_tool_use_id": "t1"}]
    lines += [{"type": "assistant", "message": {"role": "assistant", "id": "m2", "content": [text("done")]}, **frame}]
    lines[-1]["parent_tool_use_id"] = "t1"
    lines += [{"type": "user", "message": {"role": "user", "content": [result("t1")]}, **frame}]
    lines += [{"type": "result", "subtype": "error_max_turns", "session_id": "s2"}]
    assert read(*lines) == [[ASKED, CALL], [["user", "do"], ["final", "done"]]]
    assert [row.get("ended") for row in metas(*lines)] == ["error_max_turns", None]
    assert metas(*lines)[1]["parent_call"] == "t1"
