"""The steps of an epoch: which items each rank sees when, every item once and the same number of steps on all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Steps(NamedTuple):
    """An epoch of items cut into steps.

    A step takes the next `batch_size` items for each rank, in order; the items of the last step are shared out evenly,
    so that it may be smaller, and empty for some ranks where there are fewer items than ranks.
    """

    items: int
    batch_size: int
    """Items of one rank a step."""
    ranks: int = 1

    @property
    def total(self) -> int:
        """Steps of an epoch, on every rank."""
        return -(-self.items // self._wide)

    @property
    def _wide(self) -> int:
        return self.batch_size * self.ranks

    def span(self, step: int, rank: int) -> range:
        """Places of the items that a rank sees in a step."""
        start = step * self._wide
        size = min(self._wide, self.items - start)
        each, more = divmod(size, self.ranks)
        first = start + rank * each + min(rank, more)
        return range(first, first + each + (rank < more))

    def of_worker(self, first: int, worker: int = 0, workers: int = 1) -> Iterator[int]:
        """The steps from `first` on that one of a rank's workers makes; taken in turn they are all, in order."""
        yield from range(first + worker, self.total, workers)


def grouped_by_length(
    lengths: NDArray[np.int64], wide: int, buffer: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Places in an order in which the `wide` items of a step are of about one length.

    Buffers of items are sorted by length and cut into steps, and the whole steps are shuffled; a part of a step stays
    at its buffer's end.

    Args:
        lengths: (items,) in the order of the epoch.
        wide: items of a step, of all ranks together.
        buffer: items that are sorted together, rounded down to whole steps.
        random: draws the order of the steps.
    """
    size = max(1, buffer // wide) * wide
    parts = [np.empty(0, np.int64)]
    for start in range(0, len(lengths), size):
        order = start + np.argsort(lengths[start : start + size], kind="stable")
        whole = len(order) // wide
        steps = order[: whole * wide].reshape(whole, wide)
        parts += [steps[random.permutation(whole)].ravel(), order[whole * wide :]]
    return np.concatenate(parts)
