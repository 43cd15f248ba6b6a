from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.sampling import Estimate, Stratum, allocated, borders, spread, strata, together


@given(st.integers(0, 300), st.floats(0, 0.999))
def test_the_order_has_every_place_once(rows, start):
    assert sorted(spread(rows, start).tolist()) == list(range(rows))


@given(st.integers(50, 2000), st.floats(0, 0.999), st.integers(10, 50))
def test_every_beginning_is_spread_evenly(rows, start, count):
    places = np.sort(spread(rows, start)[:count])
    gaps = np.diff(np.concatenate([[0], places, [rows]]))
    assert gaps.max() <= 4 * rows / count + 2


SORTED = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5000)), min_size=1, max_size=200).map(sorted)


@given(SORTED, st.integers(1, 20))
def test_strata_are_of_one_kind_and_hold_every_row(rows, count):
    kinds, sizes = np.array(rows, dtype=np.int64).T
    edges = borders(sizes, kinds, count)
    assert edges[0] == 0
    assert edges[-1] == len(rows)
    assert all(len(set(kinds[first:end].tolist())) == 1 for first, end in pairwise(edges.tolist()))
    assert len(edges) - 1 <= count + 4


def test_strata_have_equal_shares_of_bytes():
    sizes = np.sort(np.random.default_rng(0).integers(1, 1000, 5000))
    edges = borders(sizes, np.zeros(5000, np.int64), 10)
    shares = [sizes[first:end].sum() / sizes.sum() for first, end in pairwise(edges.tolist())]
    assert shares == pytest.approx([0.1] * 10, abs=0.001)


def test_all_rows_are_counted():
    (whole,) = strata([np.array([1.0, 2.0, 6.0])], [3])
    assert whole.estimate == (9.0, 0.0)
    (empty,) = strata([np.empty(0)], [5])
    assert empty.estimate == (0.0, 0.0)


def test_rows_that_are_all_alike_may_still_hold_another():
    few, more, both = (strata([np.zeros(n), np.full(9, 50.0)], [1000, 9])[0].estimate for n in (10, 100, 1000))
    assert few.error > 5 * more.error > 0
    assert both.error == 0.0


def sampled(values, sizes, seed: int, precision: float) -> Estimate:
    """An estimate as it is made: a few rows of each stratum, then as many as seem to be missing."""
    edges = borders(sizes, np.zeros(len(sizes), np.int64), 16).tolist()
    rows = [end - first for first, end in pairwise(edges)]
    orders = [spread(count, np.random.default_rng([seed, n]).random()) for n, count in enumerate(rows)]
    looked = [20] * len(rows)
    for _ in range(3):
        picked = [
            values[first + np.sort(order[:n])] for first, order, n in zip(edges[:-1], orders, looked, strict=True)
        ]
        known = strata(picked, rows)
        looked = allocated(known, precision * together(one.estimate for one in known).total)
    return together(one.estimate for one in known)


def test_the_stated_error_is_the_true_one():
    """Two thirds of 200 estimates lie within one standard deviation, for values that follow their size with scatter."""
    random = np.random.default_rng(0)
    sizes = np.sort(random.lognormal(6, 1, 6000)).astype(np.int64)
    values = np.minimum(sizes * random.lognormal(0, 0.3, 6000), 4096) * (random.random(6000) > 0.05)
    found = [sampled(values, sizes, seed, 0.01) for seed in range(200)]
    offs = [(one.total - values.sum()) / one.error for one in found]
    assert 0.7 < np.std(offs) < 1.3
    assert abs(np.mean(offs)) < 0.3
    assert np.mean([one.error / values.sum() for one in found]) < 0.012


def test_a_sample_spread_over_sizes_is_better_than_a_plain_one():
    values = np.sort(np.random.default_rng(0).lognormal(6, 1, 4000))
    plain = values.std() * 4000 / 300**0.5
    (one,) = strata([values[np.sort(spread(4000, 0.5)[:300])]], [4000])
    assert one.estimate.error < plain / 2


@pytest.mark.parametrize("error", [100.0, 1000.0, 5000.0])
def test_as_many_rows_are_looked_at_as_an_error_needs(error):
    known = [Stratum(1000, 5, 10.0, 4.0), Stratum(1000, 5, 10.0, 400.0, 9.0), Stratum(9000, 5, 1.0, 100.0)]
    counts = allocated(known, error)
    then = [one._replace(looked_at=count) for one, count in zip(known, counts, strict=True)]
    assert together(one.estimate for one in then).error <= error
    assert counts == sorted(counts)
    fewer = [one._replace(looked_at=max(5, int(0.9 * count))) for one, count in zip(known, counts, strict=True)]
    assert together(one.estimate for one in fewer).error > error


def test_what_was_looked_at_stays_and_more_than_all_is_not_asked_for():
    assert allocated([Stratum(100, 90, 1.0, 0.0), Stratum(50, 5, 1.0, 25.0)], 0.001) == [90, 50]


def test_dear_rows_are_looked_at_less():
    cheap, dear = allocated([Stratum(1000, 2, 1.0, 9.0), Stratum(1000, 2, 1.0, 9.0, cost=16.0)], 500.0)
    assert cheap == pytest.approx(4 * dear, rel=0.1)
