"""The items of an epoch: packs of a plan, or single examples in batches of about one length."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.files.packed import packed_row
from turnmill.files.prepared import PreparedData, Side
from turnmill.stream.steps import grouped_by_length

LENGTH_BUFFER = 512
"""Examples that are sorted by length together."""

Item = dict[str, Any]
"""`input_ids`, `labels`, `loss_weights` and `seq_lengths` as arrays, `row_ids` as a list: whole examples end to end."""


class Items(NamedTuple):
    """Lists of example numbers, end to end."""

    starts: NDArray[np.int64]
    """(items + 1,) where each item's numbers begin, and the end."""
    numbers: NDArray[np.int64]

    @property
    def total(self) -> int:
        """How many items there are."""
        return len(self.starts) - 1

    def of(self, place: int) -> list[int]:
        """Example numbers of an item."""
        found: list[int] = self.numbers[self.starts[place] : self.starts[place + 1]].tolist()
        return found


def packs_of(prepared: PreparedData, side: Side, epoch: int) -> Items:
    """The packs of an epoch: mapped where its plan is stored (`mix.epochs`), else made now."""
    stored = prepared.stored_plan(side, epoch)
    if stored is not None:
        return Items(*stored)
    packs = prepared.plan(side, epoch)
    starts = np.cumsum([0, *(len(pack) for pack in packs)])
    return Items(starts, np.array([number for pack in packs for number in pack], dtype=np.int64))


def examples_of(prepared: PreparedData, side: Side, epoch: int, wide: int) -> Items:
    """The examples of an epoch, an item each, in steps of about one length; a curriculum keeps its order.

    Args:
        prepared: OUT.
        side: whose examples.
        epoch: 0-based.
        wide: items of a step, of all ranks together.
    """
    epochs = prepared.epochs(side)
    numbers = epochs.numbers(epoch)
    if epochs.ranks is None and epochs.pack.order != "kept":
        random = np.random.default_rng([epochs.seed, epoch])
        numbers = numbers[random.permutation(len(numbers))]
        numbers = numbers[grouped_by_length(epochs.lengths[numbers], wide, LENGTH_BUFFER, random)]
    return Items(np.arange(len(numbers) + 1), numbers)


def item_of(examples: Any, numbers: list[int]) -> Item:
    """The examples of an item, laid end to end; none for a rank that has nothing left: it learns nothing."""
    if not numbers:
        return {
            "input_ids": np.zeros(1, np.int32),
            "labels": np.full(1, -100, np.int32),
            "seq_lengths": np.ones(1, np.int32),
            "row_ids": [],
            "loss_weights": np.zeros(1, np.float32),
        }
    return packed_row(examples.laid_out(numbers))
