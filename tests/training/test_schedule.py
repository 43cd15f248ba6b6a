from __future__ import annotations

import itertools

import pytest

from turnmill.options import Train
from turnmill.training.schedule import schedule_of


@pytest.mark.parametrize("shape", ["cosine", "linear"])
def test_the_rate_rises_falls_and_stays(shape):
    options = Train(learning_rate=1.0, min_learning_rate=0.2, warmup_ratio=0.1, schedule=shape)
    rates = [schedule_of(options, 100).rate(step) for step in range(150)]
    assert rates[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert rates[10] == 1.0
    assert all(after <= before for before, after in itertools.pairwise(rates[10:]))
    assert rates[55] == pytest.approx(0.6)
    assert rates[100:] == pytest.approx([0.2] * 50)


def test_a_constant_rate_stays():
    options = Train(learning_rate=1.0, schedule="constant", warmup_ratio=0)
    assert {schedule_of(options, 3).rate(step) for step in range(9)} == {1.0}


@pytest.mark.parametrize(("method", "highest"), [("full", 2e-5), ("lora", 2e-4)])
def test_what_is_not_given_goes_by_the_method(method, highest):
    found = schedule_of(Train(method=method), 10)
    assert (found.highest, found.lowest) == (highest, pytest.approx(highest / 10))


def test_a_horizon_of_one_step_is_no_division_by_zero():
    assert schedule_of(Train(learning_rate=1.0), 1).rate(0) == 1.0
    assert schedule_of(Train(learning_rate=1.0), 1).rate(5) == pytest.approx(0.1)
