"""The answers that the page's own tests are given are those of the server.

`TURNMILL_RECORD=1 pytest tests/server/test_recorded_answers.py` writes them anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from chats import chat

RECORDED = Path(__file__).parents[2] / "ui" / "src" / "screens" / "tokens" / "recorded"
CALL = [{"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lima"}'}}]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
AGENT = {
    "tools": TOOLS,
    "messages": [
        {"role": "user", "content": "Is it raining? <|im_end|> 👩‍👩‍👧"},
        {"role": "assistant", "content": "", "reasoning_content": "I should look.", "tool_calls": CALL},
        {"role": "tool", "tool_call_id": "1", "name": "weather", "content": '{"rain": false}'},
        {"role": "assistant", "content": "No, it is dry. ☀️"},
    ],
}
LONG = chat(*(text for turn in range(4) for text in (f"Question {turn}?", f"Answer {turn}.")))
ROWS = [AGENT, LONG, chat("hi", " ")]
TINY = {"model": "tiny", "template": "chatml"}
ASKED: dict[str, dict[str, Any]] = {
    "agent": {"line": 1, **TINY, "fit": {"max_tokens": 2000}},
    "parts": {"line": 2, **TINY, "fit": {"max_tokens": 60, "overflow": "continue"}},
    "cut": {"line": 2, **TINY, "fit": {"max_tokens": 60}},
    "text": {"line": 1, "template": "chatml"},
    "leaves": {"line": 3, **TINY},
    "too-long": {"line": 2, **TINY, "fit": {"max_tokens": 60, "overflow": "drop"}},
    "refused": {"line": 1, "model": "none"},
}


def same(answer: Any, name: str) -> bool:
    """Whether that is what was recorded; where it is to be, it is recorded."""
    path = RECORDED / f"{name}.json"
    if os.environ.get("TURNMILL_RECORD"):
        path.write_text(json.dumps(answer, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    return bool(json.loads(path.read_text("utf-8")) == answer)


@pytest.fixture
def client(serve, put, tiny: Path):
    rows = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)
    put(rows=rows, manifest='file = "facts.jsonl"\ndialect = "openai"')
    return serve(models={"tiny": tiny})


@pytest.mark.parametrize("name", ASKED)
def test_what_is_recorded_of_tokens_is_what_the_server_says(client, name: str) -> None:
    assert same(client.post("/v1/training/datasets/by-name/facts/explain", json=ASKED[name]).json(), name)


@pytest.mark.parametrize("line", [1, 3])
def test_what_is_recorded_of_rows_is_what_the_server_says(client, line: int) -> None:
    assert same(client.get(f"/v1/training/datasets/by-name/facts/rows/{line}").json(), f"row-{line}")


def test_what_is_recorded_of_codes_is_what_the_server_says(client) -> None:
    codes = client.get("/v1/training/codes").json()["codes"]
    assert same({"codes": [code for code in codes if code["code"] == "blank-text"]}, "codes")
