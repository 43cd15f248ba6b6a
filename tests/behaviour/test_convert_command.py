from __future__ import annotations

import json
from pathlib import Path

import pytest

from chats import chat, numbered


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("dialect", ["openai", "sharegpt", "alpaca", "anthropic", "harmony"])
def test_rows_are_the_same_rows_in_another_dialect(turnmill, rows, tmp_path, dialect):
    path, output = rows(*(chat(*pair) for pair in numbered(3))), tmp_path / "out.jsonl"
    answer = turnmill("convert", path, "--to", dialect, "--output", output)
    assert (answer.code, answer.out) == (0, "rows: 3 rows, 3 written\n")
    assert answer.err.splitlines()[-1] == f"turnmill check {output} --dialect {dialect}"
    ids = [row["id"] for row in turnmill("check", path, "--json").rows]
    assert [row["id"] for row in turnmill("check", output, "--dialect", dialect, "--json").rows] == ids


def test_json_counts_each_source(turnmill, rows, tmp_path):
    path = rows(chat("q", "a"), chat("q"), {"messages": []})
    answer = turnmill("convert", path, "--to", "alpaca", "--output", tmp_path / "out.jsonl", "--json")
    (source,) = answer.json["sources"]
    assert (source["rows"], source["written"]) == (3, 1)
    assert source["codes"] == {"no-assistant-turn": 1, "no-messages": 1}
    assert "rows.jsonl:2  row 1  no-assistant-turn" in answer.err


def test_over_the_health_limit_nothing_is_written(turnmill, rows, tmp_path):
    calling = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
    tools = [{"name": "f", "parameters": {}}]
    unsayable = [{"messages": [{"role": "user", "content": f"q{n}"}, calling], "tools": tools} for n in range(25)]
    path, output = rows(chat("q", "a"), *unsayable), tmp_path / "out.jsonl"
    answer = turnmill("convert", path, "--to", "alpaca", "--output", output)
    assert answer.code == 3
    assert "25  dialect-cannot-say" in answer.err
    assert "and 5 more" not in answer.err
    assert list(tmp_path.glob("*out*")) == []
    assert turnmill("convert", path, "--to", "alpaca", "--output", output, "--health.max_rejected", "1").code == 0
    assert lines(output) == [{"instruction": "q", "input": "", "output": "a"}]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--to", "openia", "--output", "x.jsonl"], "Did you mean 'openai'"),
        (["--to", "prompt-response", "--output", "x.jsonl"], "unknown dialect to write"),
        (["--to", "openai"], "expected --output FILE"),
        (["--output", "x.jsonl"], "--to"),
    ],
)
def test_what_is_missing_or_unknown_is_said(turnmill, rows, flags, said):
    answer = turnmill("convert", rows(chat("q", "a")), *flags)
    assert answer.code == 2
    assert said in answer.err


def test_a_file_that_is_there_is_never_overwritten(turnmill, rows, write):
    kept = write("out.jsonl", "mine")
    answer = turnmill("convert", rows(chat("q", "a")), "--to", "openai", "--output", kept)
    assert answer.code == 2
    assert kept.read_text() == "mine"


def test_a_dry_run_writes_nothing(turnmill, rows, tmp_path):
    answer = turnmill("convert", rows(chat("q", "a")), "--to", "openai", "--dry-run")
    assert answer.out == "rows: 1 rows, 1 can be written\n"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]


def test_kept_columns_come_along(turnmill, rows, tmp_path):
    path, output = rows(chat("q", "a", id="r7", grade="good")), tmp_path / "out.jsonl"
    flags = ["--to", "sharegpt", "--output", output, "--read.keep_columns", "[grade]"]
    assert turnmill("convert", path, *flags).code == 0
    assert lines(output)[0].items() >= {"id": "r7", "grade": "good"}.items()
