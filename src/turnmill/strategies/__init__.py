"""Strategies: a file each, which rows of a pool a model learns from.

Semantics of the seven: palingenesis (2026), with exact shares, seeded draws inside a bucket, and budgets in rows or
trained tokens.
"""

from __future__ import annotations

from collections.abc import Callable

from turnmill.pool import FAMILIAR, TYPICAL, UNFAMILIAR, Key, Pool
from turnmill.registry import Registry

Strategy = Callable[[Pool, int, Key], None]
"""Takes of a pool: (pool, budget in the unit of its cost, a drawn order to take by)."""

strategies: Registry[Strategy] = Registry("strategies")
strategy = strategies.register

SCORELESS = frozenset({"random"})
"""Names of the strategies that look at no score."""


def backfill(pool: Pool, budget: int, draw: Key) -> None:
    """Take further typical, then familiar, then unfamiliar rows, while the budget pays."""
    for bucket in (TYPICAL, FAMILIAR, UNFAMILIAR):
        pool.take(draw, budget - pool.spent, bucket)
