from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.sampling import estimate, needed, spread


@given(st.integers(0, 300), st.floats(0, 0.999))
def test_the_order_has_every_place_once(rows, start):
    assert sorted(spread(rows, start).tolist()) == list(range(rows))


@given(st.integers(50, 2000), st.floats(0, 0.999), st.integers(10, 50))
def test_every_beginning_is_spread_evenly(rows, start, count):
    places = np.sort(spread(rows, start)[:count])
    gaps = np.diff(np.concatenate([[0], places, [rows]]))
    assert gaps.max() <= 4 * rows / count + 2


def test_all_rows_are_counted():
    assert estimate(np.array([1.0, 2.0, 6.0]), 3) == (9.0, 0.0)
    assert estimate(np.empty(0), 0) == (0.0, 0.0)


def test_the_stated_error_is_the_true_one():
    """Of 300 estimates two thirds lie within one standard deviation, for values that follow their size with scatter."""
    random = np.random.default_rng(0)
    sizes = np.sort(random.lognormal(6, 1, 4000))
    values = np.minimum(sizes * random.lognormal(0, 0.3, 4000), 4096)
    offs = []
    for seed in range(300):
        places = np.sort(spread(4000, np.random.default_rng(seed).random())[:300])
        found = estimate(values[places], 4000)
        offs.append((found.total - values.sum()) / found.error)
    assert 0.7 < np.std(offs) < 1.3
    assert abs(np.mean(offs)) < 0.3


def test_a_sample_spread_over_sizes_is_better_than_a_plain_one():
    random = np.random.default_rng(0)
    values = np.sort(random.lognormal(6, 1, 4000))
    plain = values.std() * 4000 / 300**0.5
    assert estimate(values[np.sort(spread(4000, 0.5)[:300])], 4000).error < plain / 2


@pytest.mark.parametrize(
    ("count", "error", "precision", "expected"), [(100, 0.02, 0.01, 400), (100, 0.005, 0.01, 25), (9, 1, 0, 9)]
)
def test_how_large_a_sample_must_become(count, error, precision, expected):
    assert needed(count, error, precision) == expected
