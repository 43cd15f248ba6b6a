"""Rows drawn evenly, learned from the familiar to the unfamiliar."""

from __future__ import annotations

from turnmill.pool import Key, Pool
from turnmill.strategies import strategy


@strategy("curriculum")
def curriculum(pool: Pool, budget: int, draw: Key) -> None:
    """What `random` draws; the selection puts it in order."""
    pool.take(draw, budget)
