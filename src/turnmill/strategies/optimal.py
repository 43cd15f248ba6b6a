"""Mostly typical rows, some familiar, few unfamiliar; the shares depend on how many rows there are."""

from __future__ import annotations

import math
from fractions import Fraction

from turnmill.pool import FAMILIAR, TYPICAL, UNFAMILIAR, Key, Pool
from turnmill.strategies import backfill, strategy

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
def optimal(pool: Pool, budget: int, draw: Key) -> None:
    """Drawn from each bucket by the shares, and of the unfamiliar bucket's end the highest perplexities."""
    if not pool.rows:
        return
    familiar, typical, unfamiliar, most = amounts(budget, budget * pool.rows / pool.cost)
    pool.take(lambda rows: -rows.perplexity, most, UNFAMILIAR)
    for bucket, share in ((FAMILIAR, familiar), (TYPICAL, typical), (UNFAMILIAR, unfamiliar)):
        pool.take(draw, share, bucket)
    backfill(pool, budget, draw)
