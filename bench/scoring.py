"""Scores with SmolLM2 on a CPU thread: ours, the plain forward at the same batches, and a loop row by row.

All in float32, and ours in bfloat16 besides, which a CPU with instructions for it takes several times as fast: then how
far its numbers are from those of float32 is printed, too.

.venv/bin/python bench/scoring.py [ROWS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
from measuring import cpu_s
from numpy.typing import NDArray

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


def means(scorer: Any, rows: Sequence[ToScore]) -> NDArray[np.float64]:
    """(rows,) nats a trained token."""
    found = np.zeros(len(rows))
    for number, nll in scorer.nll(rows):
        found[number] = nll.mean()
    return found


def main() -> None:
    """Print tokens a CPU second of each, and the ratios."""
    rows = drawn(int(sys.argv[1]) if len(sys.argv) > 1 else 32)
    tokens = sum(len(row.input_ids) for row in rows)
    scorers = {
        dtype: open_hf(Score(threads=1, device="cpu", dtype=dtype), smollm2.weights_directory(), 0)
        for dtype in ("float32", "bfloat16")
    }
    exact, rounded = (means(scorer, rows) for scorer in scorers.values())
    model = scorers["float32"]._model
    ways: dict[str, Callable[[], Any]] = {
        "turnmill": lambda: list(scorers["float32"].nll(rows)),
        "turnmill, bfloat16": lambda: list(scorers["bfloat16"].nll(rows)),
        "plain forward": lambda: plain(model, rows), "row by row": lambda: loop(model, rows),
    }  # fmt: skip
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = cpu_s()
            way()
            rates[name].append(tokens / (cpu_s() - start))
    for name, found in rates.items():
        ours, halved = (
            median(mine / theirs for mine, theirs in zip(rates[way], found, strict=True))
            for way in ("turnmill", "turnmill, bfloat16")
        )
        print(f"{name:<18} {median(found):7.0f} tokens a CPU second; turnmill is {ours:.2f} times as fast, "
              f"in bfloat16 {halved:.2f}")  # fmt: skip
    print(
        f"bfloat16: mean NLL of a row is off by {np.abs(rounded - exact).max() / exact.mean():.2%} of the mean at most"
    )


if __name__ == "__main__":
    main()
