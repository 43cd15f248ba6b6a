"""Codex rollouts: response items in order, what was undone and compacted, to conversations."""

from __future__ import annotations

from collections import Counter

import pytest

from session_lines import META, call, item, line, outcomes, output, prompt, rows_of, said
from turnmill.dialects import Reading, convert, dialects

NAME = "codex"
SYSTEM, ASKED, ANSWERED = ["system", "Be Codex."], ["user", "q"], ["final", "a"]
CALL, RESULT = ["call", "shell", {"command": ["ls"]}], ["result", "shell", "out"]
START = [META, *prompt("q")]
ENVIRONMENT = said("user", "<environment_context>x</environment_context>")


def read(*lines, counts: Counter[str] | None = None):
    return outcomes(NAME, lines, counts)


def metas(*lines) -> list[dict]:
    rows = [convert(row.value, dialects.get(NAME), Reading()) for row in rows_of(NAME, lines)]
    return [{"id": row.source_id, **row.meta} for row in rows]


@pytest.mark.parametrize(
    ("items", "turns"),
    [
        ([said("assistant", "a")], [ANSWERED]),
        ([said("assistant", "one ", "two")], [["final", "one two"]]),
        ([item("reasoning", summary=[], content=[{"type": "reasoning_text", "text": "r"}]), said("assistant", "a")],
         [["analysis", "r"], ANSWERED]),
        ([item("reasoning", summary=[{"type": "summary_text", "text": "s"}], encrypted_content="x"), call("c1")],
         [["analysis", "s"], CALL]),
        ([item("reasoning", summary=[], encrypted_content="x"), said("assistant", "a")], [ANSWERED]),
        ([call("c1"), output("c1"), said("assistant", "a")], [CALL, RESULT, ANSWERED]),
        ([call("c1"), call("c2"), output("c2", "2"), output("c1", "1"), said("assistant", "a")],
         [CALL, CALL, ["result", "shell", "1"], ["result", "shell", "2"], ANSWERED]),
        ([call("c1"), output("c1", [{"type": "input_text", "text": "out"}]), said("assistant", "a")],
         [CALL, RESULT, ANSWERED]),
        ([call("c1"), output("c1", {"content": "out", "success": False}), said("assistant", "a")],
         [CALL, RESULT, ANSWERED]),
        ([said("assistant", "Look."), call("c1"), output("c1"), said("assistant", "a")],
         [["commentary", "Look."], CALL, RESULT, ANSWERED]),
        ([said("assistant", "First."), said("assistant", "a")], [["commentary", "First."], ANSWERED]),
        ([item("custom_tool_call", name="apply_patch", call_id="c1", input="*** Begin"),
          item("custom_tool_call_output", call_id="c1", output="ok"), said("assistant", "a")],
         [["call", "apply_patch", {"input": "*** Begin"}], ["result", "apply_patch", "ok"], ANSWERED]),
        ([item("local_shell_call", call_id="c1", status="completed", action={"type": "exec", "command": ["ls"]}),
          output("c1"), said("assistant", "a")],
         [["call", "local_shell", {"type": "exec", "command": ["ls"]}], ["result", "local_shell", "out"], ANSWERED]),
        ([item("function_call", namespace="mcp__x", name="echo", arguments="{}", call_id="c1")],
         [["call", "mcp__x.echo", {}]]),
        ([item("tool_search_call", call_id="c1", execution="client", arguments={"q": "x"}),
          item("tool_search_output", call_id="c1", tools=[{}]), said("assistant", "a")],
         [["call", "tool_search", {"q": "x"}], ["result", "tool_search", ""], ANSWERED]),
        ([item("web_search_call", status="completed", action={"type": "search"}), said("assistant", "a")], [ANSWERED]),
        ([item("ghost_snapshot", ghost_commit={}), said("assistant", "a")], [ANSWERED]),
        ([call("c1"), output("c1")], [CALL]),
    ],
)  # fmt: skip
def test_items_are_said_in_order(items, turns):
    assert read(*START, *items) == [[SYSTEM, ASKED, *turns]]


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ([output("c9"), said("assistant", "a")], "tool-reply-unmatched"),
        ([call("c1"), output("c1"), output("c1"), said("assistant", "a")], "tool-reply-unmatched"),
        ([call("c1"), call("c1"), output("c1"), said("assistant", "a")], "call-id-repeated"),
        ([item("message", role="user", content=[{"type": "input_image", "image_url": "x"}]), said("assistant", "a")],
         "non-text-content"),
        ([item("hologram"), said("assistant", "a")], "unknown-content-part"),
        ([item("function_call", name="f", arguments="{", call_id="c1")], "tool-arguments-not-json"),
        ([item("message", role="robot", content=[]), said("assistant", "a")], "unknown-speaker"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_rejects_the_row(items, code):
    assert read(*START, *items) == [code]


def test_what_the_harness_says_before_the_user_is_the_users_turn():
    counts: Counter[str] = Counter()
    assert read(META, ENVIRONMENT, *prompt("q"), said("assistant", "a"), counts=counts) == [
        [SYSTEM, ["user", "<environment_context>x</environment_context>\n\nq"], ANSWERED]
    ]
    assert counts["read/user-events-joined"] == 1


def test_undone_turns_are_an_abandoned_branch():
    lines = [*START, said("assistant", "a"), *prompt("no"), said("assistant", "b")]
    lines += [line("event_msg", type="thread_rolled_back", num_turns=1), *prompt("yes"), said("assistant", "c")]
    head = [SYSTEM, ASKED, ANSWERED]
    assert read(*lines) == [[*head, ["user", "no"], ["final", "b"]], [*head, ["user", "yes"], ["final", "c"]]]
    assert [row.get("branch") for row in metas(*lines)] == ["abandoned", None]
    assert rows_of(NAME, lines)[1].value["shared"] == [0, 1]


def test_an_undone_first_turn_leaves_what_the_harness_said_first():
    lines = [META, ENVIRONMENT, *START[1:], said("assistant", "a")]
    lines += [line("event_msg", type="thread_rolled_back", num_turns=1), *prompt("yes"), said("assistant", "c")]
    assert read(*lines)[1][1] == ["user", "<environment_context>x</environment_context>\n\nyes"]


def test_a_compaction_begins_with_what_took_the_historys_place():
    summary = said("user", "Summary.")["payload"]
    lines = [*START, said("assistant", "a"), line("compacted", message="s", replacement_history=[summary])]
    lines += [*prompt("on"), said("assistant", "b")]
    assert read(*lines)[1] == [SYSTEM, ["user", "Summary.\n\non"], ["final", "b"]]
    assert [row["id"] for row in metas(*lines)] == ["x1", "x1@5"]


@pytest.mark.parametrize(
    "lost",
    [
        line("compacted", message="s"),
        item("compaction", encrypted_content="x"),
        line("event_msg", type="thread_rolled_back", num_turns=7),
        b'{"type": "response_item", "payl',
    ],
)
def test_where_the_history_is_lost_the_session_ends(lost):
    found = read(*START, said("assistant", "a"), lost, *prompt("on"), said("assistant", "b"))
    broken = ["invalid-json"] if isinstance(lost, bytes) else []
    assert found == [[SYSTEM, ASKED, ANSWERED], *broken, "session-torn"]


def test_calls_that_were_given_up_end_the_session_too():
    found = read(*START, call("c1"), *prompt("on"), said("assistant", "b"))
    assert found == [[SYSTEM, ASKED, CALL], "session-torn"]


@pytest.mark.parametrize(
    ("source", "linked"),
    [
        ("cli", {}),
        ({"subagent": "review"}, {"agent": "review"}),
        ({"subagent": {"thread_spawn": {"parent_thread_id": "x0", "depth": 1, "agent_role": "explorer"}}},
         {"agent": "explorer", "parent": "x0"}),
    ],
)  # fmt: skip
def test_a_sub_agent_names_the_session_that_started_it(source, linked):
    meta = line("session_meta", id="x2", source=source)
    assert metas(meta, *prompt("q"), said("assistant", "a")) == [{"id": "x2", "session": "x2", **linked}]


@pytest.mark.parametrize(
    ("ending", "ended"), [("turn_aborted", "interrupted"), ("error", "error"), ("task_complete", None)]
)
def test_a_run_says_how_it_ended(ending, ended):
    last = line("event_msg", type=ending, **({"reason": "interrupted"} if ending == "turn_aborted" else {}))
    assert metas(*START, said("assistant", "a"), last)[0].get("ended") == ended


def test_an_early_rollout_has_bare_items():
    bare = [one["payload"] for one in (said("user", "q"), call("c1"), output("c1"), said("assistant", "a"))]
    first = {"id": "x3", "timestamp": "t", "instructions": "Follow AGENTS.md."}
    assert read(first, *bare, {"record_type": "state"}) == [[ASKED, CALL, RESULT, ANSWERED]]


def test_dynamic_tools_are_defined():
    tool = {"name": "shell", "description": "d", "inputSchema": {"type": "object"}}
    meta = line("session_meta", id="x4", dynamic_tools=[tool])
    (row,) = rows_of(NAME, [meta, *prompt("q"), call("c1")])
    assert convert(row.value, dialects.get(NAME), Reading()).tools[0]["input_schema"] == {"type": "object"}
