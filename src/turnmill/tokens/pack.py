"""Packing: whole examples into rows of a fixed number of tokens, as a plan of example numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
MOST_INT32 = np.iinfo(np.int32).max


class Plan(NamedTuple):
    """Packs: lists of example numbers, end to end."""

    starts: NDArray[np.int32] | Numbers
    """(packs + 1,) where each pack's numbers begin, and the end; as `starts_kind` says."""
    numbers: Numbers

    @property
    def packs(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    def part(self, first: int, end: int) -> Plan:
        """Some neighbouring packs."""
        starts = self.starts[first : end + 1]
        return Plan(starts - starts[0], self.numbers[starts[0] : starts[-1]])

    def of(self, pack: int) -> list[int]:
        """Example numbers of a pack."""
        found: list[int] = self.numbers[self.starts[pack] : self.starts[pack + 1]].tolist()
        return found

    def lists(self) -> list[list[int]]:
        """The packs as lists."""
        starts, numbers = self.starts.tolist(), self.numbers.tolist()
        return [numbers[start:end] for start, end in pairwise(starts)]


def starts_kind(numbers: int) -> type[np.int32 | np.int64]:
    """What so many numbers are counted in: what Arrow's lists, or its large lists, are."""
    return np.int64 if numbers > MOST_INT32 else np.int32


def plan_of(packs: Sequence[Sequence[int]]) -> Plan:
    """Packs end to end."""
    numbers = np.fromiter(chain.from_iterable(packs), np.int64)
    starts = np.cumsum([0, *(len(pack) for pack in packs)])
    return Plan(starts if len(numbers) > MOST_INT32 else starts.astype(np.int32), numbers)


def packed(lengths: Sequence[int], capacity: int, *, in_order: bool) -> Plan:
    """Every example of a list in one pack, by its place there.

    Args:
        lengths: (examples,) tokens; none over `capacity`.
        capacity: tokens a pack holds.
        in_order: whether the examples stay in their order.
    """
    return plan_of(next_fit(lengths, capacity) if in_order else best_fit_decreasing(lengths, capacity))


def best_fit_decreasing(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Longest first, each into the fullest pack it fits (Johnson 1973); equal lengths in order of their numbers.

    Open packs lie in buckets by room left, and a bit set says which buckets are not empty: O(1) an example for the
    capacities of training.
    """
    packs: list[list[int]] = []
    by_room: list[list[int]] = [[] for _ in range(capacity + 1)]
    open_rooms = 0
    given = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-given, kind="stable")
    for number, length in zip(order.tolist(), given[order].tolist(), strict=True):
        fitting = open_rooms >> length
        if fitting:
            room = length + (fitting & -fitting).bit_length() - 1
            pack = by_room[room].pop()
            if not by_room[room]:
                open_rooms ^= 1 << room
            packs[pack].append(number)
            left = room - length
        else:
            pack, left = len(packs), capacity - length
            packs.append([number])
        if left:
            by_room[left].append(pack)
            open_rooms |= 1 << left
    return packs


def next_fit(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """In the given order, a new pack whenever the next example does not fit: order survives, fill does not."""
    packs: list[list[int]] = []
    room = 0
    for number, length in enumerate(lengths):
        if not packs or length > room:
            packs.append([])
            room = capacity
        packs[-1].append(number)
        room -= length
    return packs
