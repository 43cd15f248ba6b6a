"""The rows of the greatest flow weight: those that the model already writes best."""

from __future__ import annotations

import numpy as np

from turnmill.strategies import Pool, Rows, prefix, strategy


@strategy("flow")
def flow(pool: Pool, budget: int, draw: np.random.Generator) -> Rows:
    """By falling `exp(-nll / median nll)`, which is by rising mean NLL; equals in the order of the pool."""
    return prefix(np.argsort(pool.mean_nll, kind="stable"), pool, budget)
