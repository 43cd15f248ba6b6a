"""Rows drawn evenly, learned from the familiar to the unfamiliar."""

from __future__ import annotations

import numpy as np

from turnmill.strategies import Pool, Rows, strategy
from turnmill.strategies.random import random


@strategy("curriculum")
def curriculum(pool: Pool, budget: int, draw: np.random.Generator) -> Rows:
    """What `random` draws, by rising perplexity."""
    chosen = np.sort(random(pool, budget, draw))
    return chosen[np.argsort(pool.perplexity[chosen], kind="stable")]
