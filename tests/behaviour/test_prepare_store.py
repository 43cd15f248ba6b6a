"""Preparing data that lie in a store."""

from __future__ import annotations

import json

import fsspec

from chats import chat, numbered

URL = "memory://KEY:se/cret@bucket/rows.jsonl"


def test_rows_of_a_store_are_those_of_a_file_and_credentials_stay_out(prepare, turnmill, chats, tmp_path):
    local = prepare(chats("rows.jsonl", *numbered(30)), "--workers", "1")
    content = "".join(json.dumps(chat(*row)) + "\n" for row in numbered(30))
    fsspec.filesystem("memory").pipe(URL.removeprefix("memory:/"), content.encode())
    output = tmp_path / "remote"
    answer = turnmill("prepare", URL, "--model", "smollm2", "--output", output, "--workers", "1")
    assert (answer.code, "cret" in answer.err + answer.out) == (0, False)
    assert type(local)(output).sha256 == local.sha256
    assert "memory://***@bucket/rows.jsonl" in (output / "run.json").read_text()
    assert not [path for path in output.rglob("*") if path.is_file() and b"cret" in path.read_bytes()]


def test_a_dry_run_does_not_repeat_credentials(turnmill, tmp_path):
    fsspec.filesystem("memory").pipe(URL.removeprefix("memory:/"), json.dumps(chat("q", "a")).encode())
    answer = turnmill("prepare", URL, "--model", "smollm2", "--output", tmp_path / "out", "--dry-run")
    assert (answer.code, "cret" in answer.err + answer.out) == (0, False)


def test_evaluation_data_may_lie_in_a_store(turnmill, chats, tmp_path):
    fsspec.filesystem("memory").pipe(
        URL.removeprefix("memory:/"), json.dumps({"question": "What is 3 plus 3?"}).encode()
    )
    output, rows = tmp_path / "out", chats("rows.jsonl", *numbered(9))
    answer = turnmill("prepare", rows, "--model", "smollm2", "--output", output, "--against", URL)
    assert (answer.code, "cret" in answer.err + answer.out) == (0, False)
    assert "1 contaminated" in answer.out
    assert not [path for path in output.rglob("*") if path.is_file() and b"cret" in path.read_bytes()]
    assert "cret" not in str([*turnmill("decontaminate", rows, "--against", URL)])
