"""A pool of rows that a strategy takes from: the first of them in an order, as far as a budget goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.shuffle import mixed, salt_of
from turnmill.sorted_parts import PART_ROWS, Allocate, SortedParts, in_memory, number_of_key, parts_of, sortable

FAMILIAR, TYPICAL, UNFAMILIAR = 0, 1, 2
FAMILIARITY = ("familiar", "typical", "unfamiliar")
"""Names of the buckets, by number."""
OUTSIDE, AVAILABLE, TAKEN = 0, 1, 2
"""What a row is to a pool."""


class Values(NamedTuple):
    """What strategies look at, a value a row."""

    cost: NDArray[np.int64]
    """(rows,) of the budget's unit: 1, or the row's trained tokens."""
    perplexity: NDArray[np.float64]
    """(rows,) of the trained tokens; infinite where a row could not be scored, or nothing was."""
    mean_nll: NDArray[np.float64]
    """(rows,) nats a trained token; infinite as the perplexity is."""
    familiarity: NDArray[np.int8]
    """(rows,) index in `FAMILIARITY`, of the whole scored pool."""


class Rows(NamedTuple):
    """Some rows of a pool, for a key to be made of them."""

    numbers: NDArray[np.int64]
    """(rows,) of each in the whole of the pool."""
    perplexity: NDArray[np.float64]
    mean_nll: NDArray[np.float64]


Key = Callable[[Rows], NDArray[Any]]
"""Rows → (rows,) 64-bit floating or unsigned numbers, by which they are taken, the least first; equals in order."""


def drawn(*seed: int) -> Key:
    """A drawn order: the same for the same seed, whatever is taken by it."""
    salt = salt_of(*seed)
    return lambda rows: mixed(mixed(rows.numbers.astype(np.uint64)) ^ salt)


class Pool:
    """Rows to take from.

    Args:
        values: of all rows there are.
        state: (rows,) which of them are available; those that are taken are marked there.
        allocate: where sorted parts are kept.
        part_rows: how many rows are held at a time.

    Attributes:
        rows: how many were available.
        cost: theirs together.
        spent: what those that were taken cost.
    """

    def __init__(
        self,
        values: Values,
        state: NDArray[np.int8],
        allocate: Allocate = in_memory,
        part_rows: int = PART_ROWS,
    ) -> None:
        self._values, self._state = values, state
        self._allocate, self._part_rows = allocate, part_rows
        self.rows = self.cost = 0
        for numbers in self._available(None):
            self.rows += len(numbers)
            self.cost += self._cost(numbers)
        self.spent = 0

    def take(self, key: Key, budget: int, bucket: int | None = None) -> None:
        """Take the first available rows by a key, as many as the budget pays for.

        Args:
            key: by which.
            budget: in the unit of the cost; it ends before the row that would go beyond.
            bucket: of rows of this familiarity alone.
        """
        if budget <= 0:
            return
        is_enough = sum(self._cost(numbers) for numbers in self._available(bucket)) <= budget
        for numbers in self._available(bucket) if is_enough else self._sorted(key, bucket).first(budget):
            self._state[numbers] = TAKEN
            self.spent += self._cost(numbers)

    def median_perplexity(self) -> float:
        """The upper median of those that are available, of which there must be one."""
        return number_of_key(self._sorted(lambda rows: rows.perplexity, None).nth(self.rows // 2))

    def _cost(self, numbers: NDArray[np.int64]) -> int:
        return int(self._values.cost[numbers].sum())

    def _available(self, bucket: int | None) -> Iterator[NDArray[np.int64]]:
        """Numbers of the available rows, a part at a time."""
        for part in parts_of(len(self._state), self._part_rows):
            wanted = self._state[part] == AVAILABLE
            if bucket is not None:
                wanted &= self._values.familiarity[part] == bucket
            yield part.start + np.flatnonzero(wanted)

    def _sorted(self, key: Key, bucket: int | None) -> SortedParts:
        parts = SortedParts(self._allocate, self._part_rows)
        for numbers in self._available(bucket):
            rows = Rows(numbers, self._values.perplexity[numbers], self._values.mean_nll[numbers])
            keys = key(rows)
            unsigned = keys if keys.dtype == np.uint64 else sortable(keys)
            parts.add(unsigned, numbers, self._values.cost[numbers])
        return parts
