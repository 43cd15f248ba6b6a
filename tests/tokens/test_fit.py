from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.errors import Rejected
from turnmill.options import Fit
from turnmill.rendered import Example, Run
from turnmill.tokens.fit import fit


def example(*turns: int, tail: int = 0) -> Example:
    """Turns of so many tokens, the first half of each a question; `tail` untrained tokens behind."""
    runs, end = [], 0
    ends = []
    for turn, length in enumerate(turns):
        runs.append(Run(end + length // 2, 2 * turn, "user", 0.0))
        end += length
        runs.append(Run(end, 2 * turn + 1, "answer", 1.0))
        ends.append(end)
    if tail:
        runs.append(Run(end + tail, 2 * len(turns) - 1, "frame", 0.0))
    return Example("id", 0, "s", "f", 1, list(range(end + tail)), runs, ends)


def fitted(row, max_tokens, options=None, *, only_last=False):
    return fit(row, options or Fit(), max_tokens, only_last=only_last, counts=Counter())


@pytest.mark.parametrize(
    ("row", "limit", "length", "turns"),
    [
        (example(10, 10), 20, 20, 2),
        (example(10, 10), 19, 10, 1),
        (example(10, 10, 30), 25, 20, 2),
        (example(10, tail=1), 10, 10, 1),
        (example(10, 10, tail=5), 100, 20, 2),
    ],
)
def test_a_cut_stands_behind_a_whole_trained_turn(row, limit, length, turns):
    cut = fitted(row, limit)
    assert (len(cut.input_ids), len(cut.turn_ends), cut.runs[-1].end) == (length, turns, length)
    assert cut.runs[-1].kind == "answer"


@pytest.mark.parametrize(
    ("row", "limit", "options", "only_last", "code"),
    [
        (example(30, 10), 20, Fit(), False, "first-turn-too-long"),
        (example(10, 20), 20, Fit(overflow="drop"), False, "too-long"),
        (example(10, 20), 20, Fit(), True, "too-long"),
        (example(10, 400), 20, Fit(), False, "far-too-long"),
    ],
)
def test_what_does_not_fit_is_rejected_with_its_length(row, limit, options, only_last, code):
    with pytest.raises(Rejected, match=r"\d+") as refused:
        fitted(row, limit, options, only_last=only_last)
    assert refused.value.code == code


@given(turns=st.lists(st.integers(2, 40), min_size=1, max_size=8), limit=st.integers(40, 100))
def test_cuts_stand_only_at_turn_ends(turns, limit):
    row = example(*turns)
    cut = fitted(row, limit)
    assert len(cut.input_ids) in row.turn_ends
    assert len(cut.input_ids) <= limit
    assert cut.input_ids == row.input_ids[: len(cut.input_ids)]
