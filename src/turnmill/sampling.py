"""Estimating a total from some rows: spread evenly over all sizes, with an error that can be stated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
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


def borders(sizes: NDArray[np.int64], kinds: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """(strata + 1,) where strata begin, and the end: each of one kind, and each kind cut into equal shares of bytes.

    Long rows scatter more than short ones, so equal shares of bytes, looked at alike, are near the best allocation.

    Args:
        sizes: (rows,) in the order of the population.
        kinds: (rows,) likewise; rows of a kind are neighbours.
        count: about how many strata.
    """
    before = np.concatenate([[0], np.cumsum(sizes)])
    edges = np.concatenate([[0], np.flatnonzero(np.diff(kinds)) + 1, [len(kinds)]])
    cuts = [np.array([len(sizes)], dtype=np.int64)]
    for first, end in pairwise(edges.tolist()):
        parts = max(1, round(count * (before[end] - before[first]) / max(1, before[-1])))
        shares = np.linspace(before[first], before[end], parts + 1)[:-1]
        cuts.append(first + np.searchsorted(before[first:end], shares))
    return np.unique(np.concatenate(cuts))


def scatter(values: NDArray[np.float64]) -> float:
    """The variance of rows among their neighbours (Cochran 1977, §5A.12).

    Args:
        values: (sample,) in the order of the population.
    """
    groups = [part for part in np.array_split(values, max(1, len(values) // GROUP)) if len(part) > 1]
    inside = sum(len(part) for part in groups)
    return sum(len(part) * float(part.var(ddof=1)) for part in groups) / inside if inside else 0.0


class Stratum(NamedTuple):
    """What is known of neighbouring rows by those of them that were looked at."""

    rows: int
    looked_at: int
    mean: float
    variance: float
    """Of a row."""
    cost: float = 1.0
    """What it takes to look at a row, as a share of another's."""

    @property
    def estimate(self) -> Estimate:
        """The total of its rows."""
        if not self.looked_at:
            return Estimate(0.0, 0.0)
        left = 1 - self.looked_at / self.rows
        return Estimate(self.mean * self.rows, self.rows * (self.variance * left / self.looked_at) ** 0.5)


def strata(
    values: Sequence[NDArray[np.float64]], rows: Sequence[int], costs: Sequence[float] | None = None
) -> list[Stratum]:
    """A population's strata by the rows that were looked at.

    Where all rows of a stratum were alike, the next could still be as most others are: one in as many as were looked at
    of all strata that give the same.

    Args:
        values: of each stratum (sample,), in the order of the population.
        rows: of each stratum.
        costs: of a row of each stratum; None = all alike.
    """
    joined = np.concatenate([*values, np.zeros(1)])
    usual = float(joined[joined > 0].mean()) if joined.any() else 0.0
    alike: Counter[float] = Counter()
    for own in values:
        if len(own) and np.ptp(own) == 0:
            alike[float(own[0])] += len(own)
    known = [_stratum(own, count, usual, alike) for own, count in zip(values, rows, strict=True)]
    return [one._replace(cost=cost) for one, cost in zip(known, costs or [1.0] * len(known), strict=True)]


def _stratum(values: NDArray[np.float64], rows: int, usual: float, alike: Counter[float]) -> Stratum:
    count = len(values)
    if not count:
        return Stratum(rows, 0, 0.0, usual**2)
    is_alike = count < rows and np.ptp(values) == 0
    variance = usual**2 / (alike[float(values[0])] + 1) if is_alike else scatter(values)
    return Stratum(rows, count, float(values.mean()), variance)


def together(estimates: Iterable[Estimate]) -> Estimate:
    """The total of several populations that were looked at apart."""
    found = list(estimates)
    return Estimate(sum(one.total for one in found), sum(one.error**2 for one in found) ** 0.5)


def allocated(strata: Sequence[Stratum], error: float) -> list[int]:
    """How many rows of each stratum are to be looked at for an error: more of large ones and of those that scatter.

    The allocation that costs least where a row costs what it is long (Cochran 1977, §5.5), but no fewer than were
    looked at.
    """
    rows = np.array([one.rows for one in strata], dtype=np.float64)
    deviation = np.array([one.variance for one in strata]) ** 0.5
    cost = np.array([one.cost for one in strata]) ** 0.5
    best, part = rows.copy(), np.ones(len(rows), dtype=bool)
    while part.any():  # a stratum that is looked at whole has no error left, and the others have more to gain
        scattered = rows[part] * deviation[part]
        wanted = error**2 + float((scattered * deviation[part]).sum())
        factor = float((scattered * cost[part]).sum()) / wanted if wanted else 0.0
        best[part] = np.minimum(rows[part], np.ceil(factor * scattered / cost[part]))
        is_whole = part & (best >= rows)
        if not is_whole.any():
            break
        part &= ~is_whole
    known = np.array([one.looked_at for one in strata])
    return np.maximum(known, best).astype(int).tolist()  # type: ignore[no-any-return]  # numpy gives lists of Any
