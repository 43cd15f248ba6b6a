"""Rows by rising keys, sorted a part at a time: the first of them, the nth key, or all in order, without a whole sort.

A part is sorted where it lies; what concerns all of them is found by bisecting the keys over the parts. Equal keys are
in the order of the rows, so nothing hangs on how the rows were cut into parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PART_ROWS = 1 << 20
"""Rows of a part: what is held at a time."""
END = 1 << 64
"""Above every key."""

Allocate = Callable[[int, Any], NDArray[Any]]
"""(length, dtype) → an array of zeros, in memory or on a disk."""
Keys = NDArray[np.uint64]


def in_memory(length: int, kind: Any) -> NDArray[Any]:
    """An array of zeros in memory."""
    return np.zeros(length, kind)


def kept_in(allocate: Allocate, values: NDArray[Any]) -> NDArray[Any]:
    """The values where `allocate` keeps them."""
    if allocate is in_memory:
        return values
    kept = allocate(len(values), values.dtype)
    kept[:] = values
    return kept


def parts_of(rows: int, part_rows: int = PART_ROWS) -> Iterator[slice]:
    """Neighbouring rows, so many at a time."""
    for start in range(0, rows, part_rows):
        yield slice(start, min(start + part_rows, rows))


def sortable(values: NDArray[np.float64]) -> Keys:
    """Numbers, infinities too, as unsigned keys of the same order; there must be no NaN."""
    bits = (values + 0.0).view(np.int64)  # -0.0 equals 0.0
    return (bits ^ ((bits >> 63) | np.int64(-(2**63)))).view(np.uint64)


def number_of_key(key: int) -> float:
    """The number that a key of `sortable` stands for."""
    bits = np.array([key], np.uint64).view(np.int64)
    sign = np.int64(-(2**63))
    return float(np.where(bits < 0, bits ^ sign, ~bits).view(np.float64)[0])


class Sorted(NamedTuple):
    """The rows of a part, by key."""

    keys: Keys
    rows: NDArray[np.int64]
    spent: NDArray[np.int64]
    """What the rows cost together, up to and with each."""


class SortedParts:
    """Rows that were sorted part by part.

    Args:
        allocate: where sorted parts are kept.
        part_rows: how many rows are held at a time, about.
    """

    def __init__(self, allocate: Allocate = in_memory, part_rows: int = PART_ROWS) -> None:
        self._allocate, self._part_rows = allocate, part_rows
        self._parts: list[Sorted] = []

    def add(self, keys: Keys, rows: NDArray[np.int64], cost: NDArray[np.int64] | None = None) -> None:
        """Sort the rows of the next part.

        Args:
            keys: (rows,) by which.
            rows: their numbers, rising, and above those of the parts before.
            cost: of each, at least 1; None: 1.
        """
        order = _order(keys)
        spent = np.arange(1, len(rows) + 1) if cost is None else np.cumsum(cost[order])
        self._parts.append(Sorted(*(kept_in(self._allocate, column) for column in (keys[order], rows[order], spent))))

    def __len__(self) -> int:
        return sum(len(part.keys) for part in self._parts)

    @property
    def total(self) -> int:
        """What all rows cost."""
        return sum(int(part.spent[-1]) for part in self._parts if len(part.spent))

    def nth(self, number: int) -> int:
        """The key of the row with so many before it, of which there must be one more."""
        return nth_key([part.keys for part in self._parts], number)

    def first(self, budget: int) -> Iterator[NDArray[np.int64]]:
        """The first rows in order, as many as the budget pays for: it ends before the row that would go beyond.

        Gives some of them at a time, each part's on their own.
        """
        if budget >= self.total:
            yield from (part.rows for part in self._parts)
            return
        if budget <= 0:
            return
        key = _bisected(lambda key: sum(_spent(part, _below(part.keys, key)) for part in self._parts), budget)
        borders = [_below(part.keys, key) for part in self._parts]
        left = budget - sum(_spent(part, border) for part, border in zip(self._parts, borders, strict=True))
        is_over = False
        for part, border in zip(self._parts, borders, strict=True):
            taken = border
            if not is_over:
                equal = _below(part.keys, key + 1)
                base = _spent(part, border)
                taken = border + int(np.searchsorted(part.spent[border:equal], base + left, side="right"))
                left -= _spent(part, taken) - base
                is_over = taken < equal
            yield part.rows[:taken]

    def in_order(self) -> Iterator[NDArray[np.int64]]:
        """The rows by rising keys, about a part's number of them at a time; equal keys come together."""
        borders = [0] * len(self._parts)
        for start in range(0, len(self), self._part_rows):
            end = start + self._part_rows
            key = END if end >= len(self) else self.nth(end)
            ends = [_below(part.keys, key) for part in self._parts]
            stretches = [
                (part.keys[first:last], part.rows[first:last])
                for part, first, last in zip(self._parts, borders, ends, strict=True)
            ]
            borders = ends
            keys, rows = (np.concatenate(columns) for columns in zip(*stretches, strict=True))
            if len(rows):
                yield rows[_order(keys)]


def _order(keys: Keys) -> NDArray[np.int64]:
    """Places by rising keys, equals in order: the quick sort where there are none, which is several times as fast."""
    order = np.argsort(keys)
    found = keys[order]
    return np.argsort(keys, kind="stable") if (found[1:] == found[:-1]).any() else order


def nth_key(parts: Sequence[Keys], number: int) -> int:
    """The key with so many before it in sorted parts, which must hold one more."""
    if len(parts) == 1:
        return int(parts[0][number])
    return _bisected(lambda key: sum(_below(keys, key) for keys in parts), number)


def _bisected(measure: Callable[[int], int], most: int) -> int:
    """The greatest key below which no more than `most` lies."""
    low, high = 0, END  # measure(low) <= most < measure(high)
    while high - low > 1:
        middle = (low + high) // 2
        if measure(middle) <= most:
            low = middle
        else:
            high = middle
    return low


def _below(keys: Keys, key: int) -> int:
    """How many keys of a sorted part are below."""
    return len(keys) if key >= END else int(np.searchsorted(keys, np.uint64(key)))


def _spent(part: Sorted, rows: int) -> int:
    """What the first rows of a part cost."""
    return int(part.spent[rows - 1]) if rows else 0
