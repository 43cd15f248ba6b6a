"""The rows of the highest perplexity."""

from __future__ import annotations

import numpy as np

from turnmill.strategies import Pool, Rows, prefix, strategy


@strategy("hard-focus")
def hard_focus(pool: Pool, budget: int, draw: np.random.Generator) -> Rows:
    """By falling perplexity; equals in the order of the pool."""
    return prefix(np.argsort(-pool.perplexity, kind="stable"), pool, budget)
