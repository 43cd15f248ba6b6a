from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.stream.steps import Steps, grouped_by_length

SHAPES = st.tuples(st.integers(0, 200), st.integers(1, 7), st.integers(1, 6))


@given(SHAPES)
def test_every_item_comes_once_and_all_ranks_have_the_same_steps(shape):
    steps = Steps(*shape)
    seen = [place for step in range(steps.total) for rank in range(steps.ranks) for place in steps.span(step, rank)]
    assert seen == list(range(steps.items))


@given(SHAPES, st.integers(1, 5), st.integers(0, 20))
def test_workers_in_turn_make_all_steps_in_order_from_anywhere(shape, workers, first):
    steps = Steps(*shape)
    made = [list(steps.of_worker(first, worker, workers)) for worker in range(workers)]
    taken = [made[turn % workers][turn // workers] for turn in range(sum(map(len, made)))]
    assert taken == list(range(min(first, steps.total), steps.total))


@given(SHAPES)
def test_the_ranks_of_a_step_have_equal_work_but_for_one_item(shape):
    steps = Steps(*shape)
    for step in range(steps.total):
        sizes = [len(steps.span(step, rank)) for rank in range(steps.ranks)]
        assert max(sizes) - min(sizes) <= 1
        assert step == steps.total - 1 or set(sizes) == {steps.batch_size}


@given(st.lists(st.integers(1, 99), max_size=120), st.integers(1, 8), st.integers(1, 50), st.integers(0, 3))
def test_grouping_keeps_every_item(lengths, wide, buffer, seed):
    order = grouped_by_length(np.array(lengths, dtype=np.int64), wide, buffer, np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(len(lengths)))


def test_steps_of_a_buffer_are_of_one_length_and_shuffled():
    lengths = np.random.default_rng(0).integers(1, 1000, 512)
    order = grouped_by_length(lengths, 8, 512, np.random.default_rng(1))
    spreads = [np.ptp(lengths[order[start : start + 8]]) for start in range(0, 512, 8)]
    assert max(spreads) < 80
    firsts = lengths[order[::8]].tolist()
    assert firsts != sorted(firsts)


@pytest.mark.parametrize(("items", "expected"), [(0, 0), (1, 1), (8, 1), (9, 2)])
def test_how_many_steps_an_epoch_has(items, expected):
    assert Steps(items, 2, 4).total == expected
