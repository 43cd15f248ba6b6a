from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.errors import Rejected
from turnmill.options import Fit
from turnmill.rendered import Example, Run
from turnmill.tokens.fit import Part, fit


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


RESULT = Run(20, 2, "result", 1.0)
OBSERVED = Example(
    "id", 0, "s", "f", 1, list(range(20)), [Run(8, 0, "user", 0.0), Run(10, 1, "answer", 0.0), RESULT], []
)
"""Only a tool result trains."""


def fitted(row, max_tokens, options=None, *, only_last=False):
    (part,) = fit(row, options or Fit(), max_tokens, only_last=only_last, counts=Counter())
    return part.example


def continued(row, max_tokens, counts=None):
    counts = Counter() if counts is None else counts
    return fit(row, Fit(overflow="continue"), max_tokens, only_last=False, counts=counts)


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
        (OBSERVED, 19, Fit(), False, "too-long"),
        (OBSERVED, 19, Fit(overflow="continue"), False, "too-long"),
    ],
)
def test_what_does_not_fit_is_rejected_with_its_length(row, limit, options, only_last, code):
    with pytest.raises(Rejected, match=r"\d+") as refused:
        fitted(row, limit, options, only_last=only_last)
    assert refused.value.code == code


@pytest.mark.parametrize("turn_ends", [[], [10]])
def test_a_trained_result_behind_the_last_trained_turn_stays(turn_ends):
    row = Example("id", 0, "s", "f", 1, list(range(25)), [*OBSERVED.runs, Run(25, 3, "answer", 0.0)], turn_ends)
    kept = fitted(row, 25)
    assert (len(kept.input_ids), kept.runs[-1]) == (20, RESULT)


@given(turns=st.lists(st.integers(2, 40), min_size=1, max_size=8), limit=st.integers(40, 100))
def test_cuts_stand_only_at_turn_ends(turns, limit):
    row = example(*turns)
    cut = fitted(row, limit)
    assert len(cut.input_ids) in row.turn_ends
    assert len(cut.input_ids) <= limit
    assert cut.input_ids == row.input_ids[: len(cut.input_ids)]


def with_system(system: int, *turns: int) -> Example:
    """The same turns behind a system message of so many tokens."""
    row = example(*turns)
    runs = [Run(system, -1, "system", 0.0), *(Run(run.end + system, *_rest(run)) for run in row.runs)]
    ids = [*range(1000, 1000 + system), *row.input_ids]
    return Example("id", 0, "s", "f", 1, ids, runs, [end + system for end in row.turn_ends])


def _rest(run: Run) -> tuple:
    return run.message, run.kind, run.weight


def trained_tokens(part) -> list[int]:
    """The ids that train."""
    found, start = [], 0
    for run in part.example.runs:
        found += part.example.input_ids[start : run.end] if run.weight else []
        start = run.end
    return found


def test_a_further_part_shows_the_system_message_and_the_exchange_before():
    row = with_system(4, 10, 10, 10)
    first, second = continued(row, 24)
    assert [(stretch.start, stretch.end, stretch.is_context) for stretch in second.stretches] == [
        (0, 4, True), (14, 24, True), (24, 34, False),
    ]  # fmt: skip
    assert first.example.input_ids == row.input_ids[:24]
    assert second.example.input_ids == [*row.input_ids[:4], *row.input_ids[14:34]]
    assert (second.example.part, second.example.turn_ends) == (1, [24])
    assert trained_tokens(second) == row.input_ids[29:34]


def test_an_exchange_that_leaves_no_room_is_left_out():
    parts = continued(with_system(4, 20, 20), 24)
    assert parts[1].example.input_ids == [1000, 1001, 1002, 1003, *range(20, 40)]


def test_a_turn_that_fits_nowhere_is_left_out_and_counted():
    counts = Counter()
    parts = continued(with_system(4, 10, 60, 10), 24, counts)
    assert [trained_tokens(part) for part in parts] == [list(range(5, 10)), list(range(75, 80))]
    assert (counts["fit/turns-too-long"], counts["fit/parts-added"]) == (1, 1)


@given(turns=st.lists(st.integers(2, 30), min_size=2, max_size=12), limit=st.integers(40, 90), system=st.integers(1, 9))
def test_parts_train_every_turn_once_and_end_at_stops(turns, limit, system):
    row = with_system(system, *turns)
    parts = continued(row, limit)
    assert [token for part in parts for token in trained_tokens(part)] == trained_tokens(_whole(row))
    assert all(len(part.example.input_ids) <= limit for part in parts)
    assert all(part.example.turn_ends[-1] == len(part.example.input_ids) for part in parts)
    assert all(part.example.runs[-1].end == len(part.example.input_ids) for part in parts)
    assert [part.example.part for part in parts] == list(range(len(parts)))


def _whole(row: Example) -> Part:
    return Part(row, ())
