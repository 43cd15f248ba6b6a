"""Tiny models that train in a second, and what they are trained on."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np

import turnmill
from chats import chat
from tiny_models import save_tiny_model
from tokenizers_of_tests import byte_level
from turnmill.config import load
from turnmill.verbs.train import Place, Telling, plan_of, run
from turnmill.verbs.trained import publish_trained

AGAIN = "turnmill prepare rows.jsonl --output out"
FAST = {
    "train.threads": 1, "train.gradient_accumulation_steps": 3, "train.learning_rate": 0.01, "train.eval_every": 0,
    "train.warmup_ratio": 0,
}  # fmt: skip
"""Options that show in a few steps what would take many."""


def tiny_chat_model(directory: Path, model_type: str = "llama", **more: Any) -> Path:
    """A random model of an architecture with a byte-level tokenizer; it has no template of its own."""
    tokenizer = byte_level()
    ends = {"eos_token_id": tokenizer.token_to_id("<|im_end|>"), "bos_token_id": None, "pad_token_id": None}
    sizes = {"vocab_size": 640, "max_position_embeddings": 256}
    save_tiny_model(directory, model_type, **{**ends, **sizes, **more})
    tokenizer.save(str(directory / "tokenizer.json"))
    named = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (directory / "tokenizer_config.json").write_text(json.dumps(named))
    return directory


def uneven_chats(count: int = 40, seed: int = 1) -> list[dict]:
    """Chats of one to three turns and uneven lengths; some answers weigh less, some nothing."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        turns = draw.randint(1, 3)
        said = [
            text
            for turn in range(turns)
            for text in (f"q{number} {turn}" + " so" * draw.randint(0, 6), "Yes" + " go" * draw.randint(0, 9))
        ]
        row = chat(*said)
        for message in row["messages"][1::2]:
            message["weight"] = draw.choice([1, 1, 0.5, 0.25])
        rows.append(row)
    return rows


def prepared(folder: Path, model: Path, rows: list[dict] | None = None, **options: Any) -> Path:
    """OUT of some rows for a model, its weights fractional."""
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows or uneven_chats()))
    given = {"workers": 1, "fit.max_tokens": 128, "loss.fractional": True, "split.fraction": 0.2, **options}
    turnmill.prepare(data, output=folder / "out", model=str(model), template="chatml", options=given)
    return folder / "out"


def train(out: Path, output: Path, model: Path | None, telling: Telling | None = None, **options: Any) -> dict:
    """Train and publish; `resume`, `replace` and `resume_from` are those of the command line, options of `train`."""
    how = {name: options.pop(name) for name in ("resume", "replace", "resume_from") if name in options}
    given = {
        **FAST,
        **{name if name.startswith("evaluate.") else f"train.{name}": value for name, value in options.items()},
    }
    overrides = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in given.items()]
    overrides += [("train.model", str(model))] if model else []
    config, origins = load(None, overrides)
    plan = plan_of(config, origins, Place(out, output, **how), AGAIN)
    return publish_trained(run(plan, telling or Telling()))


def interrupted_at(*steps: int) -> Telling:
    """Somebody who types Ctrl-C behind some steps."""
    return Telling(progress=lambda step, _: os.kill(os.getpid(), signal.SIGINT) if step in steps else None)


def metrics(output: Path) -> list[dict]:
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def losses(output: Path) -> list[float]:
    """Of every step."""
    return [line["loss"] for line in metrics(output) if "loss" in line]


def loss_alone(model: Any, examples: list[Any], *, weighted: bool = True) -> float:
    """Weighted mean NLL of examples, each run alone without any mask or packing: in plain words, the truth."""
    import torch

    total = weight = 0.0
    for example in examples:
        ids = torch.tensor([list(example.input_ids)])
        with torch.inference_mode():
            nll = -torch.log_softmax(model(input_ids=ids, use_cache=False).logits[0].double(), -1)
        start = 0
        for one in example.runs:
            for place in range(max(1, start), one.end):
                counted = one.weight if weighted else float(one.weight > 0)
                total += counted * float(nll[place - 1, example.input_ids[place]])
                weight += counted
            start = one.end
    return total / weight


def examples_of_step(out: Path, step: int, packs: int) -> list[Any]:
    """What a step of so many packs learns from, in the first epoch."""
    data = turnmill.open_prepared(out)
    found = data.examples()
    return [found[number] for pack in data.plan()[step * packs :][:packs] for number in pack]


def weights_of(directory: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(next(directory.glob("*.safetensors")))
