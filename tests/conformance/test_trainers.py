"""What every trainer promises, over the whole registry; what it learns is tested beside the runs."""

from __future__ import annotations

import pytest

from turnmill.trainers import trainers

NAMES = trainers.names()


def test_there_are_two():
    assert {"trl", "transformers"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_says_what_it_is_in_one_line(name):
    assert 20 < len(trainers.summary(name)) <= 120
