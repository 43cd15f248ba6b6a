"""The rows whose perplexity lies nearest the median."""

from __future__ import annotations

import numpy as np

from turnmill.strategies import Pool, Rows, prefix, strategy


@strategy("medium-focus")
def medium_focus(pool: Pool, budget: int, draw: np.random.Generator) -> Rows:
    """By rising distance from the (upper) median perplexity; equals in the order of the pool."""
    if not pool.rows:
        return np.empty(0, np.int64)
    middle = pool.rows // 2
    median = np.partition(pool.perplexity, middle)[middle]
    return prefix(np.argsort(np.abs(pool.perplexity - median), kind="stable"), pool, budget)
