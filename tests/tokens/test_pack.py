from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.mix import Size, shares
from turnmill.options import Mix, Pack
from turnmill.tokens.epochs import Epochs, regrouped
from turnmill.tokens.pack import best_fit_decreasing, next_fit, plan_of

LENGTHS = st.lists(st.integers(1, 64), max_size=60)
PARTS = st.sampled_from([1, 7, 1000])
WAYS = [Pack(), Pack(order="kept"), Pack(on=False), Pack(on=False, order="kept")]


def packs(lengths, options, seed=0, epoch=0, **more) -> list[list[int]]:
    return Epochs(np.array(lengths, np.int64), 64, options, seed, **more).plan(epoch).lists()


@pytest.mark.parametrize("options", WAYS)
@given(lengths=LENGTHS, seed=st.integers(0, 3), part=PARTS)
def test_every_example_is_in_one_pack_and_no_pack_overflows(options, lengths, seed, part):
    found = packs(lengths, options, seed, part_examples=part)
    assert sorted(chain.from_iterable(found)) == list(range(len(lengths)))
    assert all(sum(lengths[number] for number in pack) <= 64 for pack in found)


@pytest.mark.parametrize("options", WAYS)
@given(part=PARTS, epoch=st.integers(0, 2), is_ranked=st.booleans())
def test_every_example_of_a_mix_comes_as_often_whatever_is_packed_together(options, part, epoch, is_ranked):
    mixed = shares({"a": Size(30, 1, 1), "b": Size(10, 1, 1)}, {"a": 1, "b": 2}, Mix())
    ranks = np.random.default_rng(1).permutation(40) if is_ranked else None
    more = {"mixed": mixed, "ranks": ranks, "epoch": epoch}
    found, whole = (packs([9] * 40, options, part_examples=rows, **more) for rows in (part, 1000))
    flat = [list(chain.from_iterable(lists)) for lists in (found, whole)]
    assert sorted(flat[0]) == sorted(flat[1])
    if is_ranked or options.order == "kept":
        assert flat[0] == flat[1] == sorted(flat[0], key=lambda number: number if ranks is None else ranks[number])


@given(lengths=LENGTHS)
def test_best_fit_takes_the_fullest_pack(lengths):
    rooms: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [room for room in rooms if room >= length]
        if fitting:
            rooms.remove(min(fitting))
            rooms.append(min(fitting) - length)
        else:
            rooms.append(64 - length)
    found = best_fit_decreasing(lengths, 64)
    assert sorted(64 - sum(lengths[number] for number in pack) for pack in found) == sorted(rooms)


def test_kept_order_survives():
    assert next_fit([3, 4, 5, 2, 8, 1], 8) == [[0, 1], [2, 3], [4], [5]]
    assert list(chain.from_iterable(packs([3, 4, 5, 2], Pack(order="kept")))) == [0, 1, 2, 3]


def test_epochs_have_their_own_order_and_can_be_repeated():
    first, again, second = (packs([64] * 50, Pack(), 7, epoch) for epoch in (0, 0, 1))
    assert first == again != second


@pytest.mark.parametrize("found", [[], [[]], [[3]], [[1, 2], [], [0]]])
def test_a_plan_is_its_lists(found):
    assert plan_of(found).lists() == found
    assert [plan_of(found).of(number) for number in range(len(found))] == found


@given(lists=st.lists(st.lists(st.integers(), max_size=5)), size=st.integers(1, 6))
def test_arrays_are_cut_anew(lists, size):
    found = [array.tolist() for array in regrouped([np.array(one, object) for one in lists], size)]
    assert list(chain.from_iterable(found)) == list(chain.from_iterable(lists))
    assert all(len(array) == size for array in found[:-1])


def test_64_parts_are_filled_nearly_as_well_as_one():
    lengths = np.random.default_rng(0).integers(1, 64, 6400)
    whole, parts = (len(packs(lengths, Pack(), part_examples=rows)) for rows in (6400, 100))
    assert whole <= parts < 1.05 * whole
