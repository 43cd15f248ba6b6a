"""A drawn order of any size that is computed and never stored: any stretch of it, and where a number stands in it.

A Feistel network over the numbers of as many bits as the size needs, walked on until the number is below the size
(Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains", cycle walking).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import xxhash
from numpy.typing import NDArray

ROUNDS = 6
MIN_BITS = 8
"""With fewer, some orders would never be drawn."""
MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Of SplitMix64's finalizer (Steele, Lea and Flood 2014)."""

Unsigned = NDArray[np.uint64]


def mixed(numbers: Unsigned) -> Unsigned:
    """Each number as another that looks drawn: SplitMix64's finalizer, which is one to one."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * MULTIPLIERS[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * MULTIPLIERS[1]
    return numbers ^ (numbers >> np.uint64(31))


def salt_of(*seed: int) -> np.uint64:
    """64 bits of a seed of several numbers."""
    return np.uint64(xxhash.xxh3_64_intdigest(",".join(map(str, seed)).encode()))


class Shuffle:
    """The numbers below `size` in a drawn order.

    Args:
        size: how many there are.
        seed: of the order; any numbers.
    """

    def __init__(self, size: int, *seed: int) -> None:
        self.size = size
        self._seed = seed
        bits = max(MIN_BITS, (size - 1).bit_length())
        self._widths = (bits // 2, bits - bits // 2)
        """Bits of the left half and of the right, before the first round."""

    def at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers that stand at some places of the order, each below `size`."""
        return self._walked(places, self._forth)

    def places(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where some numbers stand in the order: the inverse of `at`."""
        return self._walked(numbers, self._back)

    @cached_property
    def _salts(self) -> list[np.uint64]:
        return [salt_of(*self._seed, number) for number in range(ROUNDS)]

    def _walked(self, numbers: NDArray[np.int64], step: Callable[[Unsigned], Unsigned]) -> NDArray[np.int64]:
        found = step(numbers.astype(np.uint64))
        outside = np.flatnonzero(found >= self.size)
        while len(outside):
            found[outside] = step(found[outside])
            outside = outside[found[outside] >= self.size]
        return found.astype(np.int64)

    def _forth(self, numbers: Unsigned) -> Unsigned:
        left_bits, right_bits = self._widths
        left, right = numbers >> np.uint64(right_bits), numbers & _ones(right_bits)
        for salt in self._salts:
            left, right = right, left ^ (mixed(right ^ salt) & _ones(left_bits))
            left_bits, right_bits = right_bits, left_bits
        return (left << np.uint64(right_bits)) | right

    def _back(self, numbers: Unsigned) -> Unsigned:
        left_bits, right_bits = self._widths  # as at the end: the rounds are even
        left, right = numbers >> np.uint64(right_bits), numbers & _ones(right_bits)
        for salt in reversed(self._salts):
            left_bits, right_bits = right_bits, left_bits
            left, right = right ^ (mixed(left ^ salt) & _ones(left_bits)), left
        return (left << np.uint64(right_bits)) | right


def _ones(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)
