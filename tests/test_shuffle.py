"""Drawn orders that are computed: one to one, inverted, and like drawn ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.shuffle import Shuffle


@given(size=st.integers(1, 3000), seed=st.integers(0, 9))
def test_every_number_stands_once_and_is_found_again(size, seed):
    order = Shuffle(size, seed).at(np.arange(size))
    assert sorted(order.tolist()) == list(range(size))
    assert (Shuffle(size, seed).places(order) == np.arange(size)).all()


def test_a_stretch_of_an_order_too_large_to_store_is_there():
    size = 10**15
    places = np.arange(size - 5, size)
    numbers = Shuffle(size, 1).at(places)
    assert ((numbers >= 0) & (numbers < size)).all()
    assert (Shuffle(size, 1).places(numbers) == places).all()


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_order_of_a_few_is_drawn_about_as_often(size):
    orders = Counter(tuple(Shuffle(size, seed).at(np.arange(size)).tolist()) for seed in range(960))
    expected = 960 / len(orders)
    assert len(orders) == {2: 2, 3: 6, 4: 24}[size]
    assert all(abs(count - expected) < 5 * expected**0.5 for count in orders.values())


def test_neighbours_and_seeds_do_not_follow_one_another():
    first, second = (Shuffle(10_000, 7, epoch).at(np.arange(10_000)) for epoch in (0, 1))
    for one, other in ((first[:-1], first[1:]), (first, second)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.05
