"""A third of the budget for each bucket of familiarity."""

from __future__ import annotations

import numpy as np

from turnmill.strategies import FAMILIARITY, Pool, Rows, backfilled, in_bucket, prefix, shuffled, strategy


@strategy("balanced")
def balanced(pool: Pool, budget: int, draw: np.random.Generator) -> Rows:
    """A third each; the remainder and what a bucket lacks come from the typical, familiar, unfamiliar rows."""
    share = budget // len(FAMILIARITY)
    chosen = [prefix(shuffled(in_bucket(pool, bucket), draw), pool, share) for bucket in range(len(FAMILIARITY))]
    return backfilled(chosen, pool, budget, draw)
