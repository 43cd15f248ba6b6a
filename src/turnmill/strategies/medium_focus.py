"""The rows whose perplexity lies nearest the median."""

from __future__ import annotations

import numpy as np

from turnmill.pool import Key, Pool
from turnmill.strategies import strategy


@strategy("medium-focus")
def medium_focus(pool: Pool, budget: int, draw: Key) -> None:
    """By rising distance from the (upper) median perplexity; equals in the order of the pool."""
    if not pool.rows:
        return
    median = pool.median_perplexity()
    pool.take(lambda rows: np.abs(rows.perplexity - median), budget)
