"""An epoch: which examples it has, in what packs, all from a few numbers that a manifest keeps.

Examples are packed a part of the epoch at a time, and the order of the packs is computed: no more than a part is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.mix import Share, epoch_parts, times
from turnmill.options import Pack
from turnmill.shuffle import Shuffle
from turnmill.sorted_parts import PART_ROWS, Allocate, SortedParts, in_memory, kept_in, parts_of
from turnmill.tokens.pack import Numbers, Plan, packed, starts_kind


class Epochs(NamedTuple):
    """What every epoch of one side is made of."""

    lengths: NDArray[np.int64]
    """(examples,) tokens of each."""
    max_tokens: int
    pack: Pack
    seed: int
    mixed: Sequence[Share] | None = None
    """What each source gives, in the order in which the examples are numbered; None: every example once."""
    ranks: NDArray[np.int64] | None = None
    """(examples,) the order of a curriculum."""
    allocate: Allocate = in_memory
    """Where a plan is kept."""
    part_examples: int = PART_ROWS
    """Examples that are packed together."""

    @property
    def is_kept(self) -> bool:
        """Whether examples stay in their order."""
        return self.ranks is not None or self.pack.order == "kept"

    def numbers(self, epoch: int) -> Iterator[Numbers]:
        """Example numbers of an epoch, in the order in which they are packed, some at a time."""
        if self.mixed is not None and not self.is_kept:
            yield from epoch_parts(self.mixed, self.seed, epoch, self.part_examples)
            return
        for numbers in self._in_order():
            yield numbers if self.mixed is None else np.repeat(numbers, times(self.mixed, self.seed, epoch, numbers))

    def plan(self, epoch: int) -> Plan:
        """The packs of an epoch."""
        found = self._unordered(epoch)
        if self.is_kept:
            return found
        order = Shuffle(found.packs, self.seed, epoch)
        starts, numbers = (self.allocate(len(column), column.dtype) for column in found)
        for part in parts_of(found.packs, self.part_examples):
            packs = order.at(np.arange(part.start, part.stop))
            sizes = found.starts[packs + 1] - found.starts[packs]
            starts[part.start + 1 : part.stop + 1] = starts[part.start] + np.cumsum(sizes)
            ends = np.cumsum(sizes)
            places = np.repeat(found.starts[packs] - (ends - sizes), sizes) + np.arange(ends[-1])
            numbers[starts[part.start] : starts[part.stop]] = found.numbers[places]
        return Plan(starts, numbers)

    def _in_order(self) -> Iterator[Numbers]:
        """The numbers of all examples, in their order."""
        parts = parts_of(len(self.lengths), self.part_examples)
        if self.ranks is None:
            yield from (np.arange(part.start, part.stop) for part in parts)
            return
        by_rank = SortedParts(self.allocate, self.part_examples)
        for part in parts:
            by_rank.add(self.ranks[part].astype(np.uint64), np.arange(part.start, part.stop))
        yield from by_rank.in_order()

    def _unordered(self, epoch: int) -> Plan:
        """The packs in the order in which they were made."""
        plans = []
        for numbers in regrouped(self.numbers(epoch), self.part_examples):
            plan = self._packed(numbers)
            plans.append(Plan(*(kept_in(self.allocate, column) for column in plan)))
        total = sum(len(plan.numbers) for plan in plans)
        starts = self.allocate(1 + sum(plan.packs for plan in plans), starts_kind(total))
        numbers = self.allocate(total, np.int64)
        first = 0
        for plan in plans:
            end = first + plan.packs
            starts[first + 1 : end + 1] = starts[first] + plan.starts[1:]
            numbers[starts[first] : starts[end]] = plan.numbers
            first = end
        return Plan(starts, numbers)

    def _packed(self, numbers: Numbers) -> Plan:
        if not self.pack.on:
            return Plan(np.arange(len(numbers) + 1), numbers)
        plan = packed(self.lengths[numbers].tolist(), self.max_tokens, in_order=self.is_kept)
        return Plan(plan.starts, numbers[plan.numbers])


def regrouped(arrays: Iterable[Numbers], size: int) -> Iterator[Numbers]:
    """Arrays end to end, cut into arrays of that size; the last holds what is left."""
    held = np.empty(0, np.int64)
    for array in arrays:
        held = np.concatenate([held, array])
        while len(held) >= size:
            yield held[:size]
            held = held[size:]
    if len(held):
        yield held
