"""What the token viewer is told is what the command line says, and what `prepare` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest

from chats import chat
from turnmill.server.explained import Explained
from turnmill.tokens.labels import labels, loss_weights

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
CALL = [{"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
AGENT = {
    "tools": TOOLS,
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it raining? <|im_end|> 👩‍👩‍👧"},
        {"role": "assistant", "content": "", "reasoning_content": "I should look.", "tool_calls": CALL},
        {"role": "tool", "tool_call_id": "1", "name": "weather", "content": '{"rain": false}'},
        {"role": "assistant", "content": "No, it is dry. ☀️", "reasoning_content": "Dry."},
        {"role": "user", "content": "And tomorrow?"},
        {"role": "assistant", "content": "I cannot know.", "reasoning_content": "Nobody does."},
    ],
}
LONG = chat(*(text for turn in range(6) for text in (f"Question {turn}?", f"Answer {turn}. " + "So it is. " * turn)))
CASES: dict[str, tuple[dict[str, Any], str | None, dict[str, dict[str, Any]]]] = {
    "agent": (AGENT, "chatml", {}),
    "observations": (AGENT, "chatml", {"loss": {"observations": True, "scaling": "progressive"}}),
    "no reasoning": (AGENT, "chatml", {"loss": {"reasoning": False}}),
    "history": (AGENT, None, {"render": {"history": "per-turn"}}),
    "cut": (LONG, "chatml", {"fit": {"max_tokens": 120}}),
    "parts": (LONG, "chatml", {"fit": {"max_tokens": 120, "overflow": "continue"}}),
    "last": (LONG, "chatml", {"loss": {"turns": "last"}}),
}
OPENAI = 'file = "facts.jsonl"\ndialect = "openai"'


@pytest.fixture(scope="module")
def model(tiny: Path, trl_templates: Path, tmp_path_factory) -> Path:
    """A model whose own template leaves reasoning out of earlier turns."""
    folder = tmp_path_factory.mktemp("own") / "model"
    folder.mkdir()
    for path in tiny.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "chat_template.jinja").write_text((trl_templates / "qwen3.jinja").read_text("utf-8"))
    return folder


@pytest.fixture(params=CASES)
def told(request, serve, put, model: Path) -> tuple[dict[str, Any], list[str], Path]:
    """What the viewer is told of a row, the same as flags, and the file that the row stands in."""
    row, template, sections = CASES[request.param]
    sections = {"fit": {"max_tokens": 2000}, **sections}
    folder = put(
        rows=b"".join(json.dumps(one).encode() + b"\n" for one in (row, chat("Another?", "Row."))), manifest=OPENAI
    )
    asked = {"line": 1, "model": "own", "template": template, **sections}
    answer = serve(models={"own": model}).post("/v1/training/datasets/by-name/facts/explain", json=asked)
    Explained.model_validate_json(answer.content)
    flags = ["--model", str(model), *(["--template", template] if template else [])]
    for section, options in sections.items():
        for name, value in options.items():
            flags += [f"--{section}.{name}", json.dumps(value).strip('"')]
    return answer.json(), flags, folder / "facts.jsonl"


def test_the_viewer_is_told_what_the_command_line_says(told, turnmill) -> None:
    answer, flags, data = told
    assert turnmill("explain", data, "0", *flags, "--json").json == answer


def test_the_viewer_is_told_what_prepare_writes(told, turnmill, tmp_path: Path) -> None:
    answer, flags, data = told
    assert turnmill("prepare", data, *flags, "--split.fraction", "0", "--output", tmp_path / "out").code == 0
    stored = [
        row
        for path in sorted((tmp_path / "out/train/examples").glob("*.arrow"))
        for row in pyarrow.ipc.open_file(path).read_all().to_pylist()
        if row["row_id"] == answer["id"]
    ]
    assert len(stored) == len(answer["examples"])
    for example, found in zip(sorted(stored, key=lambda one: one["part"]), answer["examples"], strict=True):
        ends, weights = example["run_ends"], example["run_weights"]
        assert found["input_ids"] == example["input_ids"]
        assert found["labels"] == labels(example["input_ids"], ends, weights).tolist()
        assert found["weights"] == pytest.approx(loss_weights(ends, weights).tolist())


def test_every_token_has_its_place_owner_and_reason(told) -> None:
    for example in told[0]["examples"]:
        assert len(example["offsets"]) == len(example["input_ids"]) == example["runs"][-1]["end"]
        whys = [run["why"] for run, count in _counted(example["runs"]) for _ in range(count)]
        assert [why == "trained" for why in whys] == [weight > 0 for weight in example["weights"]]
        assert _spelt(example) == example["text"].encode()
        if example["kept"] is not None:
            assert "".join(told[0]["text"][start:end] for start, end in example["kept"]) == example["text"]


def test_what_no_example_has_is_the_rest_of_the_text(told) -> None:
    text, last = told[0]["text"], told[0]["examples"][-1]
    whole = [example for example in told[0]["examples"] if example["kept"] is not None]
    kept = {place for example in whole for start, end in example["kept"] for place in range(start, end)}
    assert last in whole
    cut = [place for one in told[0]["cut"] for place in range(one["start"], one["end"])]
    assert sorted(kept | set(cut)) == list(range(len(text)))
    assert kept.isdisjoint(cut)
    for one in told[0]["cut"]:
        assert {run["why"] for run in one["runs"]} == {"cut"}
        assert _spelt({**one, "text": text[one["start"] : one["end"]]}) == text[one["start"] : one["end"]].encode()


def _counted(runs: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    ends = [0, *(run["end"] for run in runs)]
    return [(run, run["end"] - start) for run, start in zip(runs, ends, strict=False)]


def _spelt(told: dict[str, Any]) -> bytes:
    """The bytes of the tokens, one behind the other."""
    own = {place: bytes.fromhex(found) for place, found in told["bytes"]}
    pieces = [told["text"][start:end].encode() for start, end in told["offsets"]]
    return b"".join(own.get(place, piece) for place, piece in enumerate(pieces))
