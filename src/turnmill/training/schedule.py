"""The learning rate over a run: up to the highest, down to the lowest over the horizon, and there to the end."""

from __future__ import annotations

import math
from typing import NamedTuple

from turnmill.options import Train

FULL_RATE, ADAPTER_RATE = 2e-5, 2e-4
"""The highest rate where none is given."""
LOWEST = 0.1
"""Share of the highest that the lowest is, where none is given."""


class Schedule(NamedTuple):
    """Rates by optimizer step."""

    shape: str
    """`cosine`, `linear` or `constant`."""
    highest: float
    lowest: float
    horizon: int
    """Steps after which the rate stays at its lowest: an estimate of the run's length, or its length."""
    warmup: int
    """Steps over which it rises."""

    def rate(self, step: int) -> float:
        """Of a step, 0-based; the data may outlast the horizon."""
        if step < self.warmup:
            return self.highest * (step + 1) / self.warmup
        if self.shape == "constant":
            return self.highest
        done = min(1.0, (step - self.warmup) / max(1, self.horizon - self.warmup))
        left = 0.5 * (1 + math.cos(math.pi * done)) if self.shape == "cosine" else 1 - done
        return self.lowest + (self.highest - self.lowest) * left


def schedule_of(options: Train, horizon: int) -> Schedule:
    """The schedule of a run.

    Args:
        options: what was asked for.
        horizon: optimizer steps that the run is taken to have.
    """
    highest = options.learning_rate
    if highest is None:
        highest = ADAPTER_RATE if options.method == "lora" else FULL_RATE
    lowest = highest * LOWEST if options.min_learning_rate is None else options.min_learning_rate
    warmup = math.ceil(options.warmup_ratio * horizon)
    return Schedule(options.schedule, highest, min(lowest, highest), horizon, warmup)
