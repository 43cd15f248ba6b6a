"""Made-up examples of uneven lengths, for evaluations by small random models."""

from __future__ import annotations

import numpy as np

from turnmill.rendered import Example, Kind, Run

CHAT: tuple[tuple[Kind, float], ...] = (
    ("frame", 0.0), ("user", 0.0), ("reasoning", 1.0), ("call", 1.0), ("stop", 1.0), ("result", 0.0), ("answer", 1.0),
    ("stop", 1.0),
)  # fmt: skip


def example(number: int, sizes: list[int], weights: list[float] | None = None) -> Example:
    """A chat of one call and one answer; `sizes` are the tokens of its runs."""
    ids = np.random.default_rng(number).integers(0, 96, sum(sizes)).astype(np.int32)
    ends = np.cumsum(sizes).tolist()
    weighed = weights or [weight for _, weight in CHAT]
    runs = [
        Run(end, n, kind, weight) for n, (end, (kind, _), weight) in enumerate(zip(ends, CHAT, weighed, strict=True))
    ]
    return Example(f"row-{number}", 0, "chats", "a.jsonl", number, ids, runs, [ends[4], ends[7]])


def uneven(count: int = 9) -> list[Example]:
    random = np.random.default_rng(3)
    return [example(number, random.integers(1, 9, len(CHAT)).tolist()) for number in range(count)]


def alone(model, one: Example) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(tokens - 1,) NLL, entropy, weight and kind of each token but the first, by the plain forward."""
    import torch

    ids = torch.tensor(np.asarray(one.input_ids)[None].astype(np.int64))
    with torch.no_grad():
        logs = torch.log_softmax(model.eval()(input_ids=ids, use_cache=False).logits[0].double(), -1)[:-1]
    nll = -logs.gather(1, ids[0, 1:, None])[:, 0].numpy()
    entropy = -(logs.exp() * logs).sum(-1).numpy()
    sizes = np.diff([0, *(run.end for run in one.runs)])
    weights = np.repeat([run.weight for run in one.runs], sizes)[1:]
    return nll, entropy, weights, np.repeat([run.kind for run in one.runs], sizes)[1:]
