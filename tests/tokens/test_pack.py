from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.options import Pack
from turnmill.tokens.pack import best_fit_decreasing, next_fit, plan

LENGTHS = st.lists(st.integers(1, 64), max_size=60)


@pytest.mark.parametrize("options", [Pack(), Pack(order="kept"), Pack(on=False), Pack(on=False, order="kept")])
@given(lengths=LENGTHS, seed=st.integers(0, 3))
def test_every_example_is_in_one_pack_and_no_pack_overflows(options, lengths, seed):
    packs = plan(lengths, 64, options, seed)
    assert sorted(chain.from_iterable(packs)) == list(range(len(lengths)))
    assert all(sum(lengths[number] for number in pack) <= 64 for pack in packs)


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
    packs = best_fit_decreasing(lengths, 64)
    assert sorted(64 - sum(lengths[number] for number in pack) for pack in packs) == sorted(rooms)


def test_kept_order_survives():
    assert next_fit([3, 4, 5, 2, 8, 1], 8) == [[0, 1], [2, 3], [4], [5]]
    assert list(chain.from_iterable(plan([3, 4, 5, 2], 8, Pack(order="kept"), 0))) == [0, 1, 2, 3]


def test_epochs_have_their_own_order_and_can_be_repeated():
    lengths = [8] * 50
    first, again, second = (plan(lengths, 8, Pack(), 7, epoch) for epoch in (0, 0, 1))
    assert first == again != second
