"""Sessions as rows: where they stand, what a broken line does to the rest, and what hostile files do."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from session_lines import (
    LIMIT,
    META,
    assistant,
    call,
    event,
    outcomes,
    output,
    prompt,
    result,
    rows_of,
    said,
    use,
    user,
)
from turnmill.dialects.sessions import MOST_REPEATED_BYTES, session_of, tell_session
from turnmill.errors import UsageError
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.options import Read

CLAUDE, CODEX = "claude-code", "codex"
LOG = [
    user("u1", None, "q"),
    assistant("a1", "u1", use("t1")),
    user("r1", "a1", result("t1")),
    assistant("a2", "r1", "a"),
]
ROLLOUT = [META, *prompt("q"), call("c1"), output("c1"), said("assistant", "a")]


def write(path: Path, lines: list, *, array: bool = False) -> str:
    path.write_text(json.dumps(lines, indent=1) if array else "".join(json.dumps(one) + "\n" for one in lines))
    return str(path)


def session_plan(data: list[str], name: str = CLAUDE, **options):
    return plan("s", data, Read(**options), session_of=lambda first: name)


@pytest.mark.parametrize(("lines", "name"), [(LOG, CLAUDE), (ROLLOUT, CODEX), (LOG[2:], CLAUDE), (ROLLOUT[3:], CODEX)])
def test_a_session_is_told_by_its_first_lines(lines, name):
    assert tell_session(lines).name == name


@pytest.mark.parametrize(
    "first",
    [
        {"messages": []},
        {"type": "message", "payload": {}},
        {"type": "user", "message": "hi"},
        {"uuid": "x", "conversations": []},
        {"type": ["user"], "parentUuid": None},
        {"type": "summary", "text": "t"},
    ],
)
def test_other_records_are_no_session(first):
    assert tell_session([first]) is None


def test_only_session_dialects_gather():
    assert session_of("openai") is None
    assert session_of(CODEX) is not None


@pytest.mark.parametrize("array", [False, True])
def test_a_file_is_one_shard_of_as_many_rows_as_conversations(tmp_path, array):
    branch = [
        user("u2", "a2", "more"),
        assistant("a3", "u2", "b"),
        user("u3", "a2", "else"),
        assistant("a4", "u3", "c"),
    ]
    path = write(tmp_path / "s.json", LOG + branch, array=array)
    (shard,) = session_plan([path], max_record_bytes=1 << 20).shards
    rows = list(records(shard, Read()))
    assert (shard.rows, shard.session, shard.makes_rows) == (2, CLAUDE, True)
    assert [(row.row, row.source_line) for row in rows] == [(0, 1), (1, 7)]
    assert json.loads(rows[1].raw) == rows[1].value


def test_rows_are_numbered_through_all_sessions(tmp_path):
    paths = [write(tmp_path / f"{name}.jsonl", LOG) for name in "abc"]
    shards = session_plan(paths).shards
    assert [row.row for shard in shards for row in records(shard, Read())] == [0, 1, 2]


def test_a_session_that_nobody_answers_has_no_row_and_is_counted(tmp_path):
    paths = [write(tmp_path / "a.jsonl", [user("u1", None, "q")]), write(tmp_path / "b.jsonl", LOG)]
    found = session_plan(paths)
    counts: Counter[str] = Counter()
    assert [row.source_file for shard in found.shards for row in records(shard, Read(), counts)] == ["b.jsonl"]
    assert counts["read/session-without-answer"] == 1


def test_sessions_without_any_answer_are_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no conversation"):
        session_plan([write(tmp_path / "a.jsonl", [user("u1", None, "q")])])


def test_a_broken_line_is_a_row_and_tears_off_what_hangs_on_it():
    lines = [*LOG[:2], b'{"type": "user", "uui', *LOG[3:]]
    assert outcomes(CLAUDE, lines) == [
        [["user", "q"], ["call", "Bash", {"command": "ls"}]],
        "invalid-json",
        "session-torn",
    ]
    torn = rows_of(CLAUDE, lines)[2]
    assert (torn.source_line, [one["uuid"] for one in json.loads(torn.raw)["events"]]) == (4, ["a2"])


def test_a_truncated_session_keeps_what_stands_before():
    lines = [*ROLLOUT, json.dumps(said("assistant", "b")).encode()[:40]]
    assert outcomes(CODEX, lines)[0][-1] == ["final", "a"]
    assert outcomes(CODEX, lines)[1:] == ["invalid-json"]


def test_a_truncated_stream_is_fatal(tmp_path):
    path = tmp_path / "s.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in ROLLOUT * 50).encode())[:-40])
    (shard,) = session_plan([str(path)], CODEX).shards
    assert [row.fault.code for row in records(shard, Read()) if row.fatal] == ["truncated-file"]


def test_links_in_a_circle_leave():
    lines = [*LOG, user("c1", "c2", "x"), assistant("c2", "c1", "y"), event("system", "c3", "c3")]
    found = outcomes(CLAUDE, lines)
    assert (len(found), found[1]) == (2, "session-cycle")


def test_lines_out_of_order_are_read_by_their_links():
    assert outcomes(CLAUDE, LOG[::-1]) == outcomes(CLAUDE, LOG)


def test_an_event_that_is_there_twice_is_taken_once():
    counts: Counter[str] = Counter()
    again = [{**one, "parentUuid": None} for one in LOG]
    assert outcomes(CLAUDE, LOG + again, counts) == outcomes(CLAUDE, LOG)
    assert counts["read/duplicate-event-dropped"] == 4


def test_a_result_without_its_call_rejects_the_row():
    lines = [user("u1", None, "q"), user("r1", "u1", result("t9")), assistant("a1", "r1", "a")]
    assert outcomes(CLAUDE, lines) == ["tool-reply-unmatched"]


def test_a_parent_in_another_file_is_a_torn_session():
    assert outcomes(CLAUDE, LOG[1:]) == ["session-torn"]


def test_a_session_of_too_many_bytes_is_one_row():
    (row,) = rows_of(CLAUDE, LOG, limit=500)
    assert (row.fault.code, row.source_line, len(row.raw) <= 4096) == ("record-too-large", 1, True)


def test_broken_lines_count_too():
    (row,) = rows_of(CLAUDE, [*LOG, *[b"{" * 400] * 20], limit=5_000)
    assert row.fault.code == "record-too-large"


def test_what_says_nothing_counts_for_nothing():
    noise = [event("progress", f"p{n}", "u1", data={"output": "x" * 100_000}) for n in range(20)]
    assert len(rows_of(CLAUDE, [*LOG, *noise], limit=50_000)) == 1


def test_outputs_of_megabytes_are_read():
    lines = [*LOG[:2], user("r1", "a1", result("t1", "x" * 3_000_000)), LOG[3]]
    assert len(outcomes(CLAUDE, lines)[0][2][2]) == 3_000_000


def test_half_a_character_is_a_fault_of_the_rows_that_hold_it():
    lines = [*LOG[:2], user("r1", "a1", result("t1", "cut \ud83d")), LOG[3]]
    (row,) = rows_of(CLAUDE, lines)
    assert (row.fault.code, b"\\ud83d" in row.raw) == ("lone-surrogate", True)


def test_branches_without_end_end(monkeypatch):
    monkeypatch.setattr("turnmill.dialects.claude_threads.MOST_REPEATED_BYTES", 5_000)
    lines = [*LOG, *(assistant(f"b{n}", "r1", f"b {n}") for n in range(40))]
    found = outcomes(CLAUDE, lines)
    assert found.count("session-too-branched") > 20
    assert MOST_REPEATED_BYTES > LIMIT


def test_many_branches_of_a_long_session_take_no_ages():
    chain = [user("u0", None, "q")]
    for n in range(3_000):
        chain += [assistant(f"a{n}", f"u{n}", "a"), user(f"u{n + 1}", f"a{n}", "q")]
    counts: Counter[str] = Counter()
    leaves = [assistant(f"x{n}", f"u{n}", "x") for n in range(0, 3_000, 30)]
    assert len(rows_of(CLAUDE, chain + leaves, counts)) == 101
