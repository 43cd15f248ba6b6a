"""An epoch: which examples it has, in what packs, all from a few numbers that a manifest keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.mix import Share, epoch_numbers
from turnmill.options import Pack
from turnmill.tokens.pack import plan


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

    def numbers(self, epoch: int) -> NDArray[np.int64]:
        """Example numbers of an epoch, in the order in which they are packed."""
        if self.mixed is None:
            numbers = np.arange(len(self.lengths), dtype=np.int64)
        else:
            numbers = epoch_numbers(self.mixed, self.seed, epoch)
        if self.ranks is not None:
            return numbers[np.argsort(self.ranks[numbers], kind="stable")]
        return np.sort(numbers) if self.pack.order == "kept" else numbers

    def packs(self, epoch: int) -> list[list[int]]:
        """The packs of an epoch, as lists of example numbers."""
        numbers = self.numbers(epoch)
        pack = self.pack if self.ranks is None else Pack(self.pack.on, "kept", self.pack.materialise)
        packs = plan(self.lengths[numbers].tolist(), self.max_tokens, pack, self.seed, epoch)
        if self.mixed is None and self.ranks is None:
            return packs
        found = numbers.tolist()
        return [[found[place] for place in inside] for inside in packs]
