"""Compares the losses of two trainings, step by step: `python same_losses.py MODEL OTHER`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from click import echo

NOISE = 1e-3
"""Of sums that are added up in another order."""


def losses(model: Path) -> list[float]:
    """The loss of every step."""
    lines = map(json.loads, (model / "metrics.jsonl").read_text("utf-8").splitlines())
    return [line["loss"] for line in lines if "loss" in line]


packed, padded = (losses(Path(argument)) for argument in sys.argv[1:3])
furthest = max(abs(one - other) for one, other in zip(packed, padded, strict=True))
echo(f"   {len(packed)} steps, losses {', '.join(f'{loss:.4f}' for loss in packed)}; at most {furthest:.1e} apart")
sys.exit(f"that is more than {NOISE}" if furthest > NOISE else 0)
