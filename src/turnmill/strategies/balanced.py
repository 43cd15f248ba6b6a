"""A third of the budget for each bucket of familiarity."""

from __future__ import annotations

from turnmill.pool import FAMILIARITY, Key, Pool
from turnmill.strategies import backfill, strategy


@strategy("balanced")
def balanced(pool: Pool, budget: int, draw: Key) -> None:
    """A third each; the remainder and what a bucket lacks come from the typical, familiar, unfamiliar rows."""
    for bucket in range(len(FAMILIARITY)):
        pool.take(draw, budget // len(FAMILIARITY), bucket)
    backfill(pool, budget, draw)
