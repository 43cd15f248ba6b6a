"""What each token costs a model: the same over REST and on the command line, and as transformers computes it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from chats import chat
from turnmill.server.explained import Explained

ITEM = "/v1/training/datasets/by-name/facts/explain"
OPENAI = 'file = "facts.jsonl"\ndialect = "openai"'


@pytest.fixture
def asked(serve: Callable[..., TestClient], put: Callable[..., Path], model: Path) -> Callable[..., Any]:
    """Asks for the row of a dataset."""
    put(rows=json.dumps(chat("What turns?", "A lathe.", "And?", "A mill.")).encode() + b"\n", manifest=OPENAI)
    client = serve(models={"own": model})
    return lambda **more: client.post(ITEM, json={"line": 1, **more})


def test_every_token_but_the_first_has_its_cost(asked: Callable[..., Any], model: Path) -> None:
    answer = asked(model="own", score=True)
    Explained.model_validate_json(answer.content)
    (example,) = answer.json()["examples"]
    assert example["nll"][0] is None
    assert example["nll"][1:] == pytest.approx(costs_of(model, example["input_ids"]), abs=2e-4)


def costs_of(model: Path, ids: list[int]) -> list[float]:
    """The same by transformers' own loss."""
    import torch
    import transformers

    loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    with torch.inference_mode():
        logits = loaded(torch.tensor([ids])).logits[0, :-1]
    found: list[float] = torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none").tolist()
    return found


def test_the_command_line_says_the_same(asked, turnmill, model: Path, shelf: Path) -> None:
    answer = asked(model="own", score=True).json()
    flags = ("--model", model, "--score.on", "true")
    assert turnmill("explain", shelf / "facts" / "facts.jsonl", "0", *flags, "--json").json == answer
    assert " nats" in turnmill("explain", shelf / "facts" / "facts.jsonl", "0", *flags).out


def test_what_is_not_scored_has_no_costs(asked: Callable[..., Any]) -> None:
    assert "nll" not in asked(model="own").json()["examples"][0]


def test_a_model_without_weights_is_a_clear_refusal(
    asked: Callable[..., Any], serve: Callable[..., TestClient], model: Path, tmp_path: Path
) -> None:
    bare = Path(shutil.copytree(model, tmp_path / "bare", ignore=shutil.ignore_patterns("*.safetensors")))
    answer = serve(models={"own": bare}).post(ITEM, json={"line": 1, "model": "own", "score": True})
    assert (answer.status_code, answer.json()["code"]) == (400, "not-scored")
    assert "weights" in answer.json()["detail"]


def test_a_template_alone_cannot_score(asked: Callable[..., Any]) -> None:
    answer = asked(template="chatml", score=True)
    assert (answer.status_code, answer.json()["code"]) == (400, "request-not-valid")
