from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.options import Score
from turnmill.scorers import ToScore
from turnmill.scorers.ngram import open_ngram

VOCABULARY = 10


def slow(ids: list[int]) -> list[float]:
    """The definition, token by token."""
    nats = []
    for place in range(len(ids)):
        before = ids[:place]
        unigram = (before.count(ids[place]) + 1 / VOCABULARY) / (place + 1)
        followers = [b for a, b in itertools.pairwise(before) if a == ids[place - 1]] if place else []
        bigram = (followers.count(ids[place]) + unigram) / (len(followers) + 1)
        nats.append(-math.log(0.5 * unigram + 0.5 * bigram))
    return nats


@given(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=40))
def test_it_is_what_it_is_defined_as(ids):
    wanted = np.ones(len(ids), bool)
    wanted[0] = False
    ((_, found),) = open_ngram(Score(), None, VOCABULARY).nll([ToScore(np.array(ids, np.int32), wanted)])
    assert found == pytest.approx(slow(ids)[1:], rel=1e-5)
