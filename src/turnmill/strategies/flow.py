"""The rows of the greatest flow weight: those that the model already writes best."""

from __future__ import annotations

from turnmill.pool import Key, Pool
from turnmill.strategies import strategy


@strategy("flow")
def flow(pool: Pool, budget: int, draw: Key) -> None:
    """By falling `exp(-nll / median nll)`, which is by rising mean NLL; equals in the order of the pool."""
    pool.take(lambda rows: rows.mean_nll, budget)
