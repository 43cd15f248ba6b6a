"""quarantine replay: rejected rows checked again under other options, written as a further source."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chats import chat, numbered
from published import hashes

CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"n": 1}}}], "weight": 1}
LEFT = [
    chat("q1", "<think>\nr\n</think>\n\na1", "q2"),
    chat("q3", 42),
    chat("x \ud83d y", "ok"),
    {"messages": [{"role": "user", "content": "go"}, CALL]},
    chat("q4", " "),
    {"messages": [{"role": "bing", "content": "hi"}, {"role": "assistant", "content": "ho"}], "topic": "greeting"},
]
CODES = ["last-turn-not-assistant", "non-string-content", "lone-surrogate", "tool-undefined", "blank-text"]
CODES += ["unknown-speaker"]


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """OUT of twenty good rows and the faulty ones of `LEFT`; read only."""
    from turnmill.cli.app import run

    folder = tmp_path_factory.mktemp("replay")
    rows = [*[chat(*texts) for texts in numbered(20)], *LEFT]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{\n")
    arguments = ["--sources.rows.health", "{max_rejected: 1}", "--workers", "1", "--output", str(folder / "out")]
    assert run(["prepare", str(folder / "rows.jsonl"), "--model", "smollm2", *arguments]) == 0
    return folder / "out"


@pytest.fixture
def replayed(turnmill, out, tmp_path) -> Callable:
    """The answer of a replay, and what it wrote."""

    def call(*arguments: str) -> tuple[dict, list[dict]]:
        target = tmp_path / "replayed.jsonl"
        answer = turnmill("quarantine", "replay", out, *arguments, "--output", target, "--json")
        assert answer.code == 0, answer.err
        lines = target.read_text("utf-8").splitlines() if target.exists() else []
        return answer.json, [json.loads(line) for line in lines]

    return call


def test_under_the_same_options_every_row_leaves_again(replayed) -> None:
    answer, written = replayed()
    assert answer["codes"] == {code: {code: 1} for code in sorted([*CODES, "invalid-json"])}
    assert (answer["rows"], answer["passes"], answer["output"], written) == (7, 0, None, [])


@pytest.mark.parametrize(
    ("options", "code", "content"),
    [
        (["--repairs", "drop-trailing-user"], "last-turn-not-assistant", "a1"),
        (["--repairs", "coerce-scalars"], "non-string-content", "42"),
        (["--sources.rows.repairs", "[coerce-scalars]"], "non-string-content", "42"),
        (["--repairs", "replace-surrogates"], "lone-surrogate", "ok"),
        (["--check.invalid_tool_call", "retain"], "tool-undefined", '{"n": 1}'),
        (["--sources.rows.roles", "{bing: user}"], "unknown-speaker", "ho"),
    ],
)
def test_what_passes_now_is_written(replayed, options, code, content) -> None:
    answer, written = replayed(*options)
    assert answer["passes"] == 1
    assert answer["codes"][code] == {"passes": 1}
    assert written[0]["messages"][-1]["content"][0]["text"] == content
    assert json.loads(written[0]["replayed"])["code"] == code


def test_a_row_may_leave_with_another_code(replayed) -> None:
    answer, _ = replayed("--repairs", "drop-empty-turns")
    assert answer["codes"]["blank-text"] == {"no-assistant-turn": 1}


def test_what_is_written_is_a_source_of_its_own(replayed, turnmill, tmp_path) -> None:
    names = "drop-trailing-user,replace-surrogates,coerce-scalars"
    _, written = replayed("--repairs", names, "--read.keep_columns", "topic", "--sources.rows.roles", "{bing: user}")
    found = turnmill("check", tmp_path / "replayed.jsonl", "--json").rows
    assert [row["turns"] for row in found] == [
        [["user", "q1"], ["analysis", "r"], ["final", "a1"]],
        [["user", "q3"], ["final", "42"]],
        [["user", "x \ufffd y"], ["final", "ok"]],
        [["user", "hi"], ["final", "ho"]],
    ]
    assert [row["topic"] for row in written if "topic" in row] == ['"greeting"']
    place = {"source": "rows", "source_file": "rows.jsonl", "source_line": 21, "row": 20}
    assert json.loads(written[0]["replayed"]) == {**place, "code": CODES[0], "repairs": ["drop-trailing-user"]}


def test_the_recorded_content_of_think_blocks_is_kept(replayed) -> None:
    _, written = replayed("--repairs", "drop-trailing-user")
    assert json.loads(written[0]["verbatim"]) == {"1": LEFT[0]["messages"][1]["content"]}


def test_raw_texts_and_chats_are_replayed_into_one_file(turnmill, prepare, rows, chats, tmp_path) -> None:
    texts = rows({"text": "fine"}, {"text": 42}, name="texts.jsonl")
    data = [texts, chats("few.jsonl", ["q", "a"], ["q", "a", "q"])]
    out = prepare(*data, "--workers", "1", output="made").folder
    target = tmp_path / "more.jsonl"
    turnmill("quarantine", "replay", out, "--repairs", "coerce-scalars,drop-trailing-user", "--output", target)
    found = turnmill("check", target, "--json").rows
    assert [row["turns"] for row in found] == [[["text", "42"]], [["user", "q"], ["final", "a"]]]


def test_ids_are_those_that_the_source_would_give(replayed, turnmill, rows, tmp_path) -> None:
    replayed("--repairs", "drop-trailing-user")
    asked = turnmill("check", rows(LEFT[0]), "--repairs", "drop-trailing-user", "--json").rows[0]
    assert turnmill("check", tmp_path / "replayed.jsonl", "--json").rows[0]["id"] == asked["id"]


def test_rows_are_chosen(replayed) -> None:
    answer, _ = replayed("--code", "blank-text", "--repairs", "coerce-scalars")
    assert answer["codes"] == {"blank-text": {"blank-text": 1}}


def test_an_unknown_code_suggests_one(turnmill, out) -> None:
    answer = turnmill("quarantine", "replay", out, "--code", "blank-txt", "--dry-run")
    assert (answer.code, "Did you mean 'blank-text'?" in answer.err) == (2, True)


def test_the_table_says_what_became_of_each_code(turnmill, out, tmp_path) -> None:
    answer = turnmill("quarantine", "replay", out, "--repairs", "coerce-scalars", "--output", tmp_path / "more.jsonl")
    assert ["1", "non-string-content", "passes", "rows"] in [line.split() for line in answer.out.splitlines()]
    assert f"1 of 7 rows pass now: {tmp_path / 'more.jsonl'}" in answer.out
    assert answer.next_step == f"turnmill check {tmp_path / 'more.jsonl'}"


def test_a_dry_run_writes_nothing_and_out_is_never_edited(turnmill, out) -> None:
    before = hashes(out.parent)
    answer = turnmill("quarantine", "replay", out, "--repairs", "coerce-scalars", "--dry-run", "--json")
    assert (answer.json["passes"], answer.json["output"]) == (1, None)
    inside = turnmill("quarantine", "replay", out, "--repairs", "coerce-scalars", "--output", out / "more.jsonl")
    assert (inside.code, "never edited" in inside.err) == (2, True)
    assert hashes(out.parent) == before


def test_nothing_is_overwritten(turnmill, out, tmp_path) -> None:
    target = tmp_path / "mine.jsonl"
    target.write_text("mine")
    answer = turnmill("quarantine", "replay", out, "--repairs", "coerce-scalars", "--output", target)
    assert (answer.code, target.read_text()) == (2, "mine")


def test_the_default_place_is_beside_out(turnmill, prepare, chats, tmp_path) -> None:
    data = chats("few.jsonl", ["q", "a"], ["q", "a", "q"])
    published = prepare(data, "--workers", "1", output="made")
    answer = turnmill("quarantine", "replay", published.folder, "--repairs", "drop-trailing-user", "--json")
    assert answer.json["output"] == str(tmp_path / "replayed.jsonl")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--repairs", "merge-turn"], 2, "Did you mean 'merge-turns'?"),
        (["--sources.row.repairs", "[merge-turns]"], 2, "Did you mean 'rows'?"),
        (["--check.max_turn_characters", "0"], 2, "expected at least 1"),
    ],
)
def test_wrong_options_are_said(turnmill, out, arguments, code, message) -> None:
    answer = turnmill("quarantine", "replay", out, *arguments, "--dry-run")
    assert (answer.code, message in answer.err) == (code, True)


def test_without_its_options_a_folder_cannot_be_replayed(turnmill, prepare, chats) -> None:
    published = prepare(chats("few.jsonl", ["q", "a"], ["q", "a", "q"]), "--workers", "1")
    (published.folder / "run.json").unlink()
    answer = turnmill("quarantine", "replay", published.folder)
    assert (answer.code, "run.json cannot be read" in answer.err) == (4, True)
    assert answer.next_step.startswith("turnmill quarantine export")


def test_what_a_policy_admits_is_checked_again_under_it(turnmill, out, tmp_path) -> None:
    options = ["--check.invalid_tool_call", "retain"]
    answer = turnmill("quarantine", "replay", out, *options, "--output", tmp_path / "more.jsonl")
    assert answer.next_step == f"turnmill check {tmp_path / 'more.jsonl'} --check.invalid_tool_call retain"
    assert turnmill(*answer.next_step.split()[1:]).code == 0


def test_where_nothing_passes_it_says_where_to_look(turnmill, prepare, chats) -> None:
    out = prepare(chats("long.jsonl", ["q", "a"], ["q " * 200, "a"]), "--max-tokens", "64").folder
    answer = turnmill("quarantine", "replay", out)
    assert answer.next_step == f"turnmill quarantine show {out}"
