from __future__ import annotations

import numpy as np
import pytest

from turnmill.files.row_keys import matched


def keys(*numbers: int) -> np.ndarray:
    return np.array([(number // 10, number % 10) for number in numbers], np.uint64).reshape(-1, 2)


@pytest.mark.parametrize(
    ("a", "b", "pairs"),
    [
        ((), (), []),
        ((1,), (), []),
        ((), (1,), []),
        ((1, 2, 3), (3, 1), [(0, 1), (2, 0)]),
        ((11, 21), (12, 22), []),  # half of a key is not the key
        ((7, 7, 8), (7, 8, 7, 7), [(0, 0), (1, 2), (2, 1)]),
        ((5, 5, 5), (5,), [(0, 0)]),
    ],
)
def test_equal_keys_are_matched_one_to_one_in_order(a, b, pairs):
    found = matched(keys(*a), keys(*b))
    assert sorted(zip(*(side.tolist() for side in found), strict=True)) == pairs


def test_as_many_are_matched_as_a_count_of_both_says():
    draw = np.random.default_rng(3)
    a, b = (draw.integers(0, 40, (count, 2)).astype(np.uint64) for count in (900, 1100))
    ours, theirs = matched(a, b)
    assert (a[ours] == b[theirs]).all()
    assert len(np.unique(ours)) == len(np.unique(theirs)) == len(ours)
    counts = [dict(zip(*np.unique(side @ [1000, 1], return_counts=True), strict=True)) for side in (a, b)]
    assert len(ours) == sum(min(count, counts[1].get(key, 0)) for key, count in counts[0].items())
