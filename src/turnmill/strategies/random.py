"""Rows drawn evenly: the default, and the control beside every other strategy."""

from __future__ import annotations

from turnmill.pool import Key, Pool
from turnmill.strategies import strategy


@strategy("random")
def random(pool: Pool, budget: int, draw: Key) -> None:
    """A drawn order, as far as the budget goes."""
    pool.take(draw, budget)
