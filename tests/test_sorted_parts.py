"""Sorted parts say what one sort of everything would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.sorted_parts import SortedParts, number_of_key, parts_of, sortable

KEYS = st.lists(st.integers(0, 9) | st.just(2**64 - 1), max_size=40)


def parted(keys: list[int], part_rows: int, costs: list[int] | None = None) -> SortedParts:
    found = SortedParts(part_rows=part_rows)
    for part in parts_of(len(keys), part_rows):
        cost = None if costs is None else np.array(costs[part], np.int64)
        found.add(np.array(keys[part], np.uint64), np.arange(part.start, part.stop), cost)
    return found


@given(keys=KEYS, part_rows=st.integers(1, 12))
def test_all_come_in_order_and_any_by_its_place(keys, part_rows):
    found = parted(keys, part_rows)
    expected = sorted(range(len(keys)), key=lambda row: (keys[row], row))
    assert [row for rows in found.in_order() for row in rows.tolist()] == expected
    assert [found.nth(number) for number in range(len(keys))] == sorted(keys)


@given(data=st.data(), part_rows=st.integers(1, 12))
def test_the_first_are_those_that_the_budget_pays_for(data, part_rows):
    keys = data.draw(KEYS)
    costs = data.draw(st.lists(st.integers(1, 5), min_size=len(keys), max_size=len(keys)))
    budget = data.draw(st.integers(-1, sum(costs) + 2))
    expected, left = [], budget
    for row in sorted(range(len(keys)), key=lambda row: (keys[row], row)):
        left -= costs[row]
        if left < 0:
            break
        expected.append(row)
    found = [row for rows in parted(keys, part_rows, costs).first(budget) for row in rows.tolist()]
    assert sorted(found) == sorted(expected)


@given(values=st.lists(st.floats(allow_nan=False), min_size=1))
def test_keys_of_floats_are_in_their_order_and_turn_back(values):
    keys = sortable(np.array(values))
    assert [number_of_key(int(key)) for key in np.sort(keys)] == sorted(values)


def test_zeros_are_equal():
    assert len(set(sortable(np.array([0.0, -0.0])).tolist())) == 1


@pytest.mark.parametrize("budget", [0, 3])
def test_nothing_gives_nothing(budget):
    assert [*SortedParts().first(budget), *SortedParts().in_order()] == []
