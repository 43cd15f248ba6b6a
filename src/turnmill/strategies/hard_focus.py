"""The rows of the highest perplexity."""

from __future__ import annotations

from turnmill.pool import Key, Pool
from turnmill.strategies import strategy


@strategy("hard-focus")
def hard_focus(pool: Pool, budget: int, draw: Key) -> None:
    """By falling perplexity; equals in the order of the pool."""
    pool.take(lambda rows: -rows.perplexity, budget)
