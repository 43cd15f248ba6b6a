"""Strategies: a file each, scored rows → which of them a model learns from, in order.

Semantics of the seven: palingenesis (2026), with exact shares, seeded draws inside a bucket, and budgets in rows or
trained tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.registry import Registry

FAMILIAR, TYPICAL, UNFAMILIAR = 0, 1, 2
FAMILIARITY = ("familiar", "typical", "unfamiliar")
"""Names of the buckets, by number."""

Rows = NDArray[np.int64]
"""(rows,) numbers of rows of a pool."""


class Pool(NamedTuple):
    """The rows that a strategy chooses from, a value each."""

    cost: NDArray[np.int64]
    """(rows,) of the budget's unit: 1, or the row's trained tokens."""
    perplexity: NDArray[np.float64]
    """(rows,) of the trained tokens; infinite where a row could not be scored; all NaN where nothing was scored."""
    mean_nll: NDArray[np.float64]
    """(rows,) nats a trained token."""
    familiarity: NDArray[np.int8]
    """(rows,) index in `FAMILIARITY`, of the whole scored pool."""

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.cost)

    def part(self, rows: Rows) -> Pool:
        """Those rows alone, in that order."""
        return Pool(self.cost[rows], self.perplexity[rows], self.mean_nll[rows], self.familiarity[rows])


Strategy = Callable[[Pool, int, np.random.Generator], Rows]
"""(pool, budget in the unit of `cost`, seeded draw) → distinct rows, in the order they are to be learned."""

strategies: Registry[Strategy] = Registry("strategies")
strategy = strategies.register

SCORELESS = frozenset({"random"})
"""Names of the strategies that look at no score."""


def prefix(rows: Rows, pool: Pool, budget: int) -> Rows:
    """The first of the rows, as many as the budget pays for: it ends before the row that would go beyond."""
    affordable = rows[: max(budget, 0)]  # no row costs less than 1
    spent = np.cumsum(pool.cost[affordable])
    return affordable[: int(np.searchsorted(spent, budget, side="right"))]


def shuffled(rows: Rows, random: np.random.Generator) -> Rows:
    """The rows in a drawn order."""
    return rows[random.permutation(len(rows))]


def in_bucket(pool: Pool, bucket: int) -> Rows:
    """The rows of a bucket, in the order of the pool."""
    return np.flatnonzero(pool.familiarity == bucket).astype(np.int64)


def backfilled(chosen: list[Rows], pool: Pool, budget: int, random: np.random.Generator) -> Rows:
    """What was chosen, and further rows of the typical, familiar and unfamiliar buckets, while the budget pays."""
    taken = np.concatenate(chosen) if chosen else np.empty(0, np.int64)
    is_taken = np.zeros(pool.rows, dtype=bool)
    is_taken[taken] = True
    for bucket in (TYPICAL, FAMILIAR, UNFAMILIAR):
        left = budget - int(pool.cost[taken].sum())
        rows = in_bucket(pool, bucket)
        more = prefix(shuffled(rows[~is_taken[rows]], random), pool, left)
        taken = np.concatenate([taken, more])
    return taken
