"""Scores with SmolLM2 on a CPU thread: ours, the plain forward at the same batches, and a loop row by row.

.venv/bin/python bench/scoring.py [ROWS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from measuring import cpu_s

from turnmill import smollm2
from turnmill.options import Score
from turnmill.scorers import ToScore
from turnmill.scorers.hf import open_hf
from turnmill.token_costs import BATCH_TOKENS, batches_of

ROUNDS = 3


def drawn(rows: int) -> list[ToScore]:
    """Rows of 32 to 256 tokens, of which the last half trains."""
    random = np.random.default_rng(0)
    found = []
    for _ in range(rows):
        length = int(random.integers(32, 257))
        wanted = np.arange(length) >= length // 2
        found.append(ToScore(random.integers(0, 49_000, length).astype(np.int32), wanted))
    return found


def plain(model: Any, rows: Sequence[ToScore]) -> None:
    """The whole forward of the same padded batches, and nothing else."""
    import torch

    for batch in batches_of([len(row.input_ids) for row in rows], BATCH_TOKENS["cpu"]):
        longest = max(len(rows[number].input_ids) for number in batch)
        ids = np.zeros((len(batch), longest), dtype=np.int64)
        for place, number in enumerate(batch):
            ids[place, : len(rows[number].input_ids)] = rows[number].input_ids
        with torch.inference_mode():
            model(input_ids=torch.from_numpy(ids), use_cache=False)


def loop(model: Any, rows: Sequence[ToScore]) -> None:
    """One row after the other: logits of every position, log-softmax over all of them."""
    import torch

    for row in rows:
        ids = torch.from_numpy(row.input_ids[None].astype(np.int64))
        with torch.inference_mode():
            logits = model(input_ids=ids).logits[0].float()
            torch.log_softmax(logits, dim=-1)[torch.arange(len(row.input_ids) - 1), ids[0, 1:]]


def main() -> None:
    """Print tokens a CPU second of each, and the ratios."""
    rows = drawn(int(sys.argv[1]) if len(sys.argv) > 1 else 32)
    tokens = sum(len(row.input_ids) for row in rows)
    scorer = open_hf(Score(threads=1, device="cpu"), smollm2.weights_directory(), 0)
    list(scorer.nll(rows[:1]))
    model = scorer._model
    ways: dict[str, Callable[[], Any]] = {
        "turnmill": lambda: list(scorer.nll(rows)), "plain forward": lambda: plain(model, rows),
        "row by row": lambda: loop(model, rows),
    }  # fmt: skip
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = cpu_s()
            way()
            rates[name].append(tokens / (cpu_s() - start))
    for name, found in rates.items():
        ratio = median(ours / theirs for ours, theirs in zip(rates["turnmill"], found, strict=True))
        print(f"{name:<14} {median(found):7.0f} tokens a CPU second; turnmill is {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
