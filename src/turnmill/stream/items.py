"""The items of an epoch: packs of a plan, or single examples in batches of about one length."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnmill.files.packed import packed_row
from turnmill.files.prepared import PreparedData, Side
from turnmill.stream.steps import grouped_by_length
from turnmill.tokens.pack import Plan

LENGTH_BUFFER = 512
"""Examples that are sorted by length together."""

Item = dict[str, Any]
"""`input_ids`, `labels`, `loss_weights` and `seq_lengths` as arrays, `row_ids` as a list: whole examples end to end."""


def examples_of(prepared: PreparedData, side: Side, epoch: int, wide: int) -> Plan:
    """The examples of an epoch, an item each, in steps of about one length; a curriculum keeps its order.

    Args:
        prepared: OUT.
        side: whose examples.
        epoch: 0-based.
        wide: items of a step, of all ranks together.
    """
    epochs = prepared.epochs(side)
    numbers = np.concatenate([np.empty(0, np.int64), *epochs.numbers(epoch)])
    if not epochs.is_kept:
        random = np.random.default_rng([epochs.seed, epoch])
        numbers = numbers[random.permutation(len(numbers))]
        numbers = numbers[grouped_by_length(epochs.lengths[numbers], wide, LENGTH_BUFFER, random)]
    return Plan(np.arange(len(numbers) + 1), numbers)


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
