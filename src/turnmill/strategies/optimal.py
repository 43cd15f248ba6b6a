"""Mostly typical rows, some familiar, few unfamiliar; the shares depend on how many rows there are."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from turnmill.strategies import (
    FAMILIAR,
    TYPICAL,
    UNFAMILIAR,
    Pool,
    Rows,
    backfilled,
    in_bucket,
    prefix,
    shuffled,
    strategy,
)  # fmt: skip

SHARES = (
    (2_000, ("0.35", "0.50", "0.15")),
    (10_000, ("0.25", "0.50", "0.20")),
    (None, ("0.20", "0.50", "0.25")),
)
"""Under so many rows → shares of the familiar, typical and unfamiliar; the rest goes to the most unfamiliar."""


def amounts(budget: int, rows: float) -> tuple[int, int, int, int]:
    """The budget cut into familiar, typical, unfamiliar and most unfamiliar; the first three rounded down.

    Args:
        budget: in any unit.
        rows: how many rows it pays for, about: chooses the shares.
    """
    shares = next(shares for below, shares in SHARES if below is None or rows < below)
    first = [math.floor(budget * Fraction(share)) for share in shares]
    return first[0], first[1], first[2], budget - sum(first)


@strategy("optimal")
def optimal(pool: Pool, budget: int, draw: np.random.Generator) -> Rows:
    """Drawn from each bucket by the shares, and of the unfamiliar bucket's end the highest perplexities."""
    if not pool.rows:
        return np.empty(0, np.int64)
    familiar, typical, unfamiliar, most = amounts(budget, budget / pool.cost.mean())
    hardest = in_bucket(pool, UNFAMILIAR)
    hardest = hardest[np.argsort(-pool.perplexity[hardest], kind="stable")]
    top = prefix(hardest, pool, most)
    parts = [
        prefix(shuffled(in_bucket(pool, FAMILIAR), draw), pool, familiar),
        prefix(shuffled(in_bucket(pool, TYPICAL), draw), pool, typical),
        prefix(shuffled(hardest[len(top) :], draw), pool, unfamiliar),
        top,
    ]
    return backfilled(parts, pool, budget, draw)
