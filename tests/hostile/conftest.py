from __future__ import annotations

import pytest


@pytest.fixture
def prepare_rows(turnmill, tmp_path):
    """Prepares a file of these bytes with SmolLM2, and gives the answer of `--json`."""

    def call(content: bytes, *flags: str):
        (tmp_path / "prepared.jsonl").write_bytes(content)
        output = ("--model", "smollm2", "--output", tmp_path / "out", "--workers", "1", "--json")
        answer = turnmill("prepare", tmp_path / "prepared.jsonl", *output, *flags)
        assert answer.code == 0, answer.err
        return answer

    return call
