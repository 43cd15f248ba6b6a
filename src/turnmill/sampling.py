"""Estimating a total from some rows: spread evenly over all sizes, with an error that can be stated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GROUP = 16
"""Neighbours in size whose scatter tells the error."""
GOLDEN = (5**0.5 - 1) / 2


class Estimate(NamedTuple):
    """A total over a population."""

    total: float
    error: float
    """One standard deviation."""


def spread(rows: int, start: float) -> NDArray[np.int64]:
    """(rows,) places 0 … rows-1 in an order whose every beginning is spread evenly over them.

    Steps of the golden ratio (Weyl 1916); places that are hit twice are left for the end.

    Args:
        rows: how many.
        start: where to begin, of [0, 1).
    """
    hits = np.floor(((start + GOLDEN * np.arange(1, rows + 1)) % 1.0) * rows).astype(np.int64)
    _, first = np.unique(hits, return_index=True)
    order = hits[np.sort(first)]
    missed = np.setdiff1d(np.arange(rows), order)
    return np.concatenate([order, missed])


def estimate(values: NDArray[np.float64], rows: int) -> Estimate:
    """The total of a population, from an evenly spread part of it.

    The error is that of strata: groups of neighbours, each with its own variance (Cochran 1977, §5A.12).

    Args:
        values: (sample,) in the order of the rows' sizes.
        rows: of the population.
    """
    count = len(values)
    if not count:
        return Estimate(0.0, 0.0)
    total = float(values.mean()) * rows
    if count >= rows:
        return Estimate(float(values.sum()), 0.0)
    groups = [part for part in np.array_split(values, max(1, count // GROUP)) if len(part) > 1]
    variance = sum(len(part) * float(part.var(ddof=1)) for part in groups) / count**2
    return Estimate(total, rows * (variance * (1 - count / rows)) ** 0.5)


def needed(count: int, error: float, precision: float) -> int:
    """How large a sample of `count` must become for an error to fall to the precision."""
    return round(count * (error / precision) ** 2) if precision > 0 else count
