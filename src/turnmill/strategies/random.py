"""Rows drawn evenly: the default, and the control beside every other strategy."""

from __future__ import annotations

import numpy as np

from turnmill.strategies import Pool, Rows, prefix, shuffled, strategy


@strategy("random")
def random(pool: Pool, budget: int, draw: np.random.Generator) -> Rows:
    """A drawn order, as far as the budget goes."""
    return prefix(shuffled(np.arange(pool.rows, dtype=np.int64), draw), pool, budget)
