"""Sessions of agents through the command line: a folder of them is read as any data is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from published import Published
from session_lines import assistant, result, use, user

RETAIN = ("--check.invalid_tool_call", "retain")
LOG = [
    user("u1", None, "q"),
    assistant("a1", "u1", use("t1")),
    user("r1", "a1", result("t1")),
    assistant("a2", "r1", "a"),
]


@pytest.fixture(scope="module")
def traces(request) -> Path:
    return Path(__file__).parents[2] / "examples" / "traces"


@pytest.fixture
def session(write) -> Callable[..., Path]:
    """Writes a session and gives its path; a line of text stands as it is."""

    def call(name: str, *lines: dict | str) -> Path:
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        return write(f"sessions/{name}", "\n".join(texts) + "\n")

    return call


def test_a_folder_of_sessions_is_told_file_by_file(turnmill, traces):
    answer = turnmill("check", traces, *RETAIN, "--json")
    assert [(row["source_file"][:5], row["source_line"], row["code"]) for row in answer.rows] == [
        ("6f1c2", 2, None),
        ("6f1c2", 19, None),
        ("agent", 1, None),
        ("rollo", 2, None),
    ]
    assert "is claude-code (events with parentUuid and sessionId)" in answer.err
    assert "is codex (lines of type session_meta with payload)" in answer.err


def test_many_files_that_are_told_alike_are_counted(turnmill, session):
    for n in range(30):
        path = session(f"{n}.jsonl", LOG[0], assistant("a1", "u1", f"a {n}"))
    said = [line for line in turnmill("check", path.parent, "--json").err.splitlines() if line.startswith("sessions: ")]
    assert said == [
        "sessions: 0.jsonl is claude-code (events with parentUuid and sessionId)",
        "sessions: and 29 more like it",
    ]


def test_without_definitions_calls_are_rejected_by_name(turnmill, traces):
    answer = turnmill("check", traces, "--json")
    assert {row["code"] for row in answer.rows} == {"tool-undefined"}
    assert answer.code == 3


def test_prepared_rows_say_whose_they_are(turnmill, traces, tmp_path):
    out = tmp_path / "out"
    assert turnmill("prepare", traces, *RETAIN, "--model", "smollm2", "--output", out, "--workers", "1").code == 0
    rows = [
        row for part in sorted((out / "conversations").rglob("*.parquet")) for row in pq.read_table(part).to_pylist()
    ]
    linked = [(row["source_id"], row["session"], row["agent"], row["branch"], row["ended"]) for row in rows]
    session = "6f1c2d3e-0b1a-4c5d-8e9f-000000000001"
    assert linked == [
        (f"{session}@a8", f'"{session}"', None, '"abandoned"', '"interrupted"'),
        (session, f'"{session}"', None, None, None),
        (f"{session}/a7c31", f'"{session}"', '"a7c31"', None, None),
        ("019c0000-0000-7000-8000-000000000002", '"019c0000-0000-7000-8000-000000000002"', None, None, None),
    ]
    turns = turnmill("explain", out, "1", "--json").json["turns"]
    assert [turn["why"] for turn in turns if turn["message"] in (1, 13)] == ["weight-zero", "trained"]


def test_whole_sessions_are_held_out(turnmill, session, tmp_path):
    for n in range(110):
        log = [user("u1", None, f"q {n}"), assistant("a1", "u1", f"a {n}"), assistant("b1", "u1", f"b {n}")]
        path = session(f"{n}.jsonl", *({**line, "sessionId": f"s{n}"} for line in log))
    options = ("--split.rows", "6", "--split.group_field", "session", "--model", "smollm2", "--workers", "1")
    assert turnmill("prepare", path.parent, *options, "--output", tmp_path / "out").code == 0
    sessions = [row["session"] for row in Published(tmp_path / "out").table("conversations/eval")]
    assert len(sessions) == 2 * len(set(sessions)) >= 6


def test_a_column_of_traces_groups_no_other_data(turnmill, chats, tmp_path):
    options = (
        "--split.rows",
        "1",
        "--split.group_field",
        "session",
        "--model",
        "smollm2",
        "--output",
        tmp_path / "out",
    )
    answer = turnmill("prepare", chats("c.jsonl", ["q", "a"]), *options)
    assert (answer.code, "expected a column that read.keep_columns names" in answer.err) == (2, True)


def test_other_data_get_no_columns_of_traces(turnmill, chats, tmp_path):
    turnmill(
        "prepare", chats("c.jsonl", ["q", "a"]), "--model", "smollm2", "--output", tmp_path / "out", "--workers", "1"
    )
    assert "session" not in pq.read_schema(next((tmp_path / "out" / "conversations").rglob("*.parquet"))).names


def test_rows_of_a_session_are_explained_counted_estimated_and_converted(turnmill, traces, tmp_path):
    explained = turnmill("explain", traces, "2", *RETAIN, "--template", "chatml", "--json").json
    assert explained["text"].startswith("<|im_start|>user\nFind who calls height()")
    census = turnmill("census", traces, *RETAIN, "--model", "smollm2", "--json").json
    assert (census["rows"]["accepted"], census["per_source"]["traces"]["counts"]["read/free-text-call"]) == (4, 1)
    estimate = turnmill("estimate", traces, *RETAIN, "--model", "smollm2", "--json").json
    assert estimate["examples"]["total"] == 4
    written = tmp_path / "openai.jsonl"
    assert turnmill("convert", traces, *RETAIN, "--to", "openai", "--output", written).code == 0
    records = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
    assert [record.get("agent") for record in records] == [None, None, "a7c31", None]
    again = turnmill("check", written, *RETAIN, "--json").rows
    assert [row["turns"] for row in again] == [
        row["turns"] for row in turnmill("check", traces, *RETAIN, "--json").rows
    ]


def test_a_named_dialect_reads_every_json_file_as_a_session(turnmill, session):
    session("a.jsonl", *LOG)
    session("index.json", {"version": 1, "entries": []})
    answer = turnmill("check", session("b.jsonl", *LOG).parent, *RETAIN, "--dialect", "claude-code", "--json")
    assert [row["source_file"] for row in answer.rows] == ["a.jsonl", "b.jsonl"]


def test_another_dialect_reads_the_lines_one_by_one(turnmill, session):
    answer = turnmill("check", session("a.jsonl", *LOG), "--dialect", "openai", "--json")
    assert {row["code"] for row in answer.rows} == {"no-messages"}


def test_limits_count_rows_not_lines(turnmill, traces):
    assert len(turnmill("check", traces, *RETAIN, "--limit", "3", "--json").rows) == 3


def test_rows_that_leave_are_kept_and_replayed(turnmill, session, tmp_path):
    torn = session(
        "a.jsonl", *LOG, LOG[0] | {"uuid": "u9"}, '{"broken', assistant("x2", "x1", "b"), assistant("a9", "u9", "ok")
    )
    out = tmp_path / "out"
    options = ("--model", "smollm2", "--output", out, "--workers", "1", "--health.max_rejected", "1")
    assert turnmill("prepare", torn, session("b.jsonl", *LOG[:1], assistant("a1", "u1", "ok")), *options).code == 0
    left = turnmill("quarantine", "show", out, "--json").rows
    assert sorted((row["code"], row["source_line"]) for row in left) == [
        ("invalid-json", 6),
        ("session-torn", 7),
        ("tool-undefined", 1),
    ]
    target = tmp_path / "replayed.jsonl"
    replayed = turnmill("quarantine", "replay", out, *RETAIN, "--output", target, "--json").json
    assert replayed["codes"]["tool-undefined"] == {"passes": 1}
    assert [one["role"] for one in json.loads(target.read_text())["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


def test_rows_that_left_are_exported_and_read_again(turnmill, session, tmp_path):
    out, kept = tmp_path / "out", tmp_path / "mend.jsonl"
    path = session("a.jsonl", *LOG)
    session("b.jsonl", LOG[0], assistant("a1", "u1", "ok"))
    assert turnmill("prepare", path.parent, "--model", "smollm2", "--output", out, "--workers", "1").code == 0
    assert turnmill("quarantine", "export", out, "--to", kept).code == 0
    for dialect in ("auto", "claude-code"):
        (row,) = turnmill("check", kept, *RETAIN, "--dialect", dialect, "--json").rows
        assert row["turns"] == turnmill("check", path, *RETAIN, "--json").rows[0]["turns"]


def test_rows_of_whole_runs_are_no_session(turnmill, rows):
    start = {"id": 0, "source": "user", "action": "message", "args": {"content": "q"}}
    answer = {"id": 1, "source": "agent", "action": "message", "args": {"content": "a"}}
    path = rows({"instance_id": "i1", "history": [start, answer]}, {"instance_id": "i2", "history": [start, answer]})
    for dialect in ("auto", "openhands"):
        assert len(turnmill("check", path, "--dialect", dialect, "--json").rows) == 2


def test_a_folder_of_trajectories_is_read(turnmill, write, tmp_path):
    entry = {"agent": "main", "message_type": "observation"}
    said = [{"role": role, "content": text, **entry} for role, text in (("user", "task"), ("assistant", "ls"))]
    record = {"trajectory": [], "history": said, "info": {"exit_status": "exit_cost"}}
    path = write("runs/task-1/task-1.traj", json.dumps(record, indent=2))
    out = tmp_path / "out"
    assert turnmill("prepare", path.parents[1], "--model", "smollm2", "--output", out, "--workers", "1").code == 0
    (row,) = Published(out).table("conversations/train")
    assert (row["source_file"], row["ended"]) == ("task-1/task-1.traj", '"exit_cost"')


def test_half_a_character_is_mended_where_it_is_asked_for(turnmill, session):
    path = session("a.jsonl", *LOG[:2], user("r1", "a1", result("t1", "cut \ud83d")), LOG[3])
    assert turnmill("check", path, *RETAIN, "--json").rows[0]["code"] == "lone-surrogate"
    (row,) = turnmill("check", path, *RETAIN, "--repairs", "replace-surrogates", "--json").rows
    assert row["turns"][2] == ["result", "Bash", "cut �"]


def test_a_changed_session_is_stale_not_misread(turnmill, session, tmp_path):
    path = session("a.jsonl", LOG[0], assistant("a1", "u1", "ok"))
    options = ("--model", "smollm2", "--output", tmp_path / "out", "--workers", "1")
    turnmill("prepare", path, *options)
    with path.open("a") as file:
        file.write(json.dumps(user("u2", "a1", "more")) + "\n" + json.dumps(assistant("a2", "u2", "b")) + "\n")
    turnmill("prepare", path, *options)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["rows"]["accepted"] == 1
    assert "b<|im_end|>" in turnmill("explain", tmp_path / "out", "0", "--json").json["text"]
