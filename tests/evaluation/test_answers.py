from __future__ import annotations

import math

import numpy as np
import pytest

from turnmill.evaluation.answers import mean_of, nearness, words

NEAR = [
    ("Paris.", "Paris.", (1, 1, 1)),
    (" Paris.\n", "Paris.", (1, 1, 1)),
    ("paris", "Paris.", (0, 1, 1)),
    ("The Eiffel Tower", "an eiffel tower!", (0, 1, 1)),
    ("Lyon", "Paris", (0, 0, 0)),
    ("It is Paris", "Paris", (0, 0, 0.5)),
    ("", "Paris", (0, 0, 0)),
    ("", "", (1, 1, 1)),
    ("…", "...", (0, 0, 0)),  # no words on either side: the texts decide
    ("cafe\u0301", "café", (0, 1, 1)),
    ("STRASSE", "Straße", (0, 1, 1)),
    ("1.5", "15", (0, 0, 0)),
    ("1,000", "1,000.", (0, 1, 1)),
    ("no no no", "no", (0, 0, 0.5)),
    ("<think>\nhm\n</think>\n\nParis", "Paris", (1, 1, 1)),
    ("<|channel|>analysis<|message|>x<|channel|>final<|message|>Paris", "<think>y</think>Paris", (1, 1, 1)),
    ("東京です", "東京でした", (0, 0, 2 * 3 / 9)),
]


@pytest.mark.parametrize(("given", "recorded", "near"), NEAR)
def test_answers_are_set_beside_the_recorded_ones(given, recorded, near):
    assert nearness(given, recorded) == pytest.approx(near)


def test_words_keep_numbers_whole_and_leave_articles_out():
    assert words("A U.S. cost: $1,234.50 (the end)") == ["u", "s", "cost", "1,234.50", "end"]


def test_a_mean_has_the_error_of_independent_rows():
    values = np.random.default_rng(1).normal(size=50)
    found = mean_of(values, [str(number) for number in range(50)])
    assert found.mean == pytest.approx(values.mean())
    assert found.error == pytest.approx(values.std(ddof=1) / 50**0.5)


def test_turns_of_one_row_count_as_one():
    once = mean_of([1.0, 0.0, 0.5], ["a", "b", "c"])
    thrice = mean_of([1.0, 0.0, 0.5] * 3, ["a", "b", "c"] * 3)
    assert (thrice.mean, thrice.error) == (once.mean, pytest.approx(once.error))


def test_sums_over_tokens_are_weighed_by_them():
    assert mean_of([2.0, 30.0], ["a", "b"], [1, 9]).mean == pytest.approx(3.2)


@pytest.mark.parametrize(("values", "mean"), [([], math.nan), ([0.25], 0.25)])
def test_what_is_too_little_has_no_error(values, mean):
    found = mean_of(values, ["a"] * len(values))
    assert math.isnan(found.error)
    assert found.mean == pytest.approx(mean, nan_ok=True)
