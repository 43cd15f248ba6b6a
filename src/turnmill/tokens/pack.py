"""Packing: whole examples into rows of a fixed number of tokens, as a plan of example numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turnmill.options import Pack


def plan(lengths: Sequence[int], capacity: int, options: Pack, seed: int, epoch: int = 0) -> list[list[int]]:
    """The packs of one epoch: lists of example numbers, every example exactly once.

    Args:
        lengths: (examples,) tokens; none over `capacity`.
        capacity: tokens a pack holds.
        options: the `pack` section; without `on` every example is a pack of its own.
        seed: of the order of packs, with `epoch`.
        epoch: 0-based.
    """
    is_kept = options.order == "kept"
    if not options.on:
        packs = [[number] for number in range(len(lengths))]
    else:
        packs = next_fit(lengths, capacity) if is_kept else best_fit_decreasing(lengths, capacity)
    if is_kept:
        return packs
    order = np.random.default_rng([seed, epoch]).permutation(len(packs))
    return [packs[number] for number in order.tolist()]


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
