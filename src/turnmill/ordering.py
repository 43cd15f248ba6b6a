"""Orders of examples by what they mean: related, but not the same, next to each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

CELLS_PROBED = 4
"""Nearest cells that are searched for the next example."""


def threshold_filtered_order(
    vectors: NDArray[np.float32], seed: int = 0, *, least: float = 0.2, most: float = 0.85
) -> NDArray[np.int64]:
    """An order in which each example is followed by a similar, not too similar one.

    Threshold Filtering Packing (Dong et al. 2024, "Threshold Filtering Packing for Supervised Fine-Tuning"): a greedy
    path to the most similar example that was not visited, of those whose cosine lies in [least, most]; where there is
    none, to the most similar one. It serves trainers whose packed examples see each other; turnmill's own packs isolate
    them, and are not changed by it.

    Neighbours are searched in cells around drawn centres, about n^1.5 dot products in place of n^2: the path is nearly
    the greedy one.

    Args:
        vectors: (examples, dimensions) one embedding each, of any length but 0.
        seed: draws the start and the centres.
        least: cosine of examples that have nothing to do with each other.
        most: cosine of examples that say the same.

    Returns:
        (examples,) numbers of the examples in order.
    """
    count = len(vectors)
    if count <= 2:
        return np.arange(count, dtype=np.int64)
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    random = np.random.default_rng(seed)
    cells = _Cells(units, random)
    order = np.empty(count, dtype=np.int64)
    current = int(random.integers(count))
    for place in range(count):
        order[place] = current
        cells.remove(current)
        if place + 1 < count:
            current = cells.next_to(units[current], least, most)
    return order


class _Cells:
    """The vectors that were not visited, by the nearest of some drawn centres."""

    def __init__(self, units: NDArray[np.float32], random: np.random.Generator) -> None:
        self._units = units
        centres = random.choice(len(units), max(1, int(len(units) ** 0.5)), replace=False)
        self._centres = units[centres]
        self._cell = np.concatenate(
            [np.argmax(part @ self._centres.T, axis=1) for part in np.array_split(units, -(-len(units) // 4096))]
        )
        order = np.argsort(self._cell, kind="stable")
        borders = np.searchsorted(self._cell[order], np.arange(len(centres) + 1))
        self._members = [order[first:end] for first, end in pairwise(borders.tolist())]
        self._left = np.array([len(members) for members in self._members])

    def remove(self, number: int) -> None:
        """The vector was visited."""
        cell = self._cell[number]
        self._members[cell] = self._members[cell][self._members[cell] != number]
        self._left[cell] -= 1

    def next_to(self, unit: NDArray[np.float32], least: float, most: float) -> int:
        """The vector to go to: of the nearest cells that hold any."""
        nearness = np.where(self._left > 0, self._centres @ unit, -np.inf)
        probed = np.argsort(-nearness, kind="stable")[:CELLS_PROBED]
        near = np.concatenate([self._members[cell] for cell in probed])
        cosines = self._units[near] @ unit
        wanted = (cosines >= least) & (cosines <= most)
        return int(near[np.argmax(np.where(wanted, cosines + 2.0, cosines))])
