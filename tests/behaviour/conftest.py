from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture(scope="session")
def examples() -> Path:
    return EXAMPLES


@pytest.fixture
def rows(write: Callable[[str, str], Path]) -> Callable[..., Path]:
    """Writes rows as JSON lines and gives the file's path."""

    def call(*records: Any, name: str = "rows.jsonl") -> Path:
        return write(name, "".join(json.dumps(record) + "\n" for record in records))

    return call


@pytest.fixture
def prepared(turnmill, rows, examples: Path, tmp_path: Path) -> Path:
    """A prepared folder of four good rows, one of them twice, and the faulty ones."""
    good = (examples / "assistant.jsonl").read_text("utf-8").splitlines()[4:8]
    data = rows(*map(json.loads, [*good, good[0]]), name="good.jsonl")
    output = tmp_path / "out"
    flags = ("--model", "smollm2", "--output", output, "--workers", "1")
    assert turnmill("prepare", data, examples / "faulty.jsonl", *flags).code == 0
    return output
