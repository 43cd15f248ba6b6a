"""Sums of what a scorer gives: by turn, by kind, of exactly the trained tokens."""

from __future__ import annotations

import numpy as np
import pytest

from turnmill.errors import UsageError
from turnmill.files.scores import Entry
from turnmill.options import Model, Score
from turnmill.rendered import KINDS
from turnmill.scorers import ToScore, Unscored, scorers
from turnmill.verbs import score

ANSWER, STOP, USER = (KINDS.index(name) for name in ("answer", "stop", "user"))


def row(**changes):
    """Two turns: user 2 tokens, answer 3, stop 1, user 1, answer 2, stop 1."""
    return {
        "row_id": "r", "part": 0, "source": "s",
        "input_ids": np.arange(10, dtype=np.int32),
        "run_ends": np.array([2, 5, 6, 7, 9, 10], np.int32),
        "run_kinds": np.array([USER, ANSWER, STOP, USER, ANSWER, STOP], np.int8),
        "run_weights": np.array([0, 1, 1, 0, 0.5, 0.5], np.float32),
        "turn_ends": np.array([6, 10], np.int32),
        **changes,
    }  # fmt: skip


class Counting:
    """Each token costs its own number; counts what it is asked."""

    def __init__(self) -> None:
        self.identity = {"scorer": "counting"}
        self.asked: list[ToScore] = []

    def nll(self, sequences):
        for number, one in enumerate(sequences):
            self.asked.append(one)
            yield number, one.input_ids[one.wanted].astype(np.float32)


class Memory:
    """A cache in memory."""

    def __init__(self) -> None:
        self.known: dict[bytes, Entry] = {}

    def find(self, keys):
        return {key: self.known[key] for key in keys if key in self.known}

    def add(self, entries):
        self.known.update(entries)


def scored(*rows, full=False, scorer=None, cache=None):
    entries = score._scored(list(rows), scorer or Counting(), cache or Memory(), full=full)
    return [score.score_of(one, entry) for one, entry in zip(rows, entries, strict=True)]


def test_sums_are_of_the_trained_tokens_by_turn_and_kind():
    (found,) = scored(row())
    assert (found.tokens, found.trained_tokens, found.predicted, found.sum_nll) == (10, 7, 7, 2 + 3 + 4 + 5 + 7 + 8 + 9)
    assert (found.turn_tokens, found.turn_nll) == ([4, 3], [14.0, 24.0])
    assert dict(zip(found.kinds, zip(found.kind_tokens, found.kind_nll, strict=True), strict=True)) == {
        ANSWER: (5, 24.0), STOP: (2, 14.0),
    }  # fmt: skip


def test_the_first_token_is_never_asked_for():
    (found,) = scored(row(run_weights=np.ones(6, np.float32)))
    assert (found.trained_tokens, found.predicted, found.sum_nll) == (10, 9, 45.0)


def test_all_tokens_are_summed_beside_the_trained_ones():
    (found,) = scored(row(), full=True)
    assert (found.sum_nll, found.full_tokens, found.full_nll) == (38.0, 9, 45.0)
    assert np.isnan(scored(row())[0].full_nll)


def test_what_is_known_is_not_asked_again():
    scorer, cache = Counting(), Memory()
    first = scored(row(), row(input_ids=np.arange(10, 20, dtype=np.int32)), scorer=scorer, cache=cache)
    again = scored(row(row_id="other"), scorer=scorer, cache=cache)
    assert len(scorer.asked) == 2
    assert again[0].sum_nll == first[0].sum_nll


def test_the_same_example_twice_is_asked_once():
    scorer = Counting()
    scored(row(), row(part=1), scorer=scorer)
    assert len(scorer.asked) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"input_ids": np.arange(1, 11, dtype=np.int32)},
        {"run_weights": np.array([0, 1, 1, 0, 0, 1], np.float32)},
        {"run_ends": np.array([1, 5, 6, 7, 9, 10], np.int32)},
    ],
)
def test_other_tokens_or_labels_are_another_key(changes):
    assert score.key_of(row(**changes)) != score.key_of(row())


def test_a_weight_that_still_trains_is_the_same_key():
    assert score.key_of(row(run_weights=np.array([0, 2, 2, 0, 1, 1], np.float32))) == score.key_of(row())


def test_what_could_not_be_scored_says_why():
    class Refusing(Counting):
        def nll(self, sequences):
            yield from ((number, Unscored("too long")) for number, _ in enumerate(sequences))

    (found,) = scored(row(), scorer=Refusing())
    assert np.isnan(found.sum_nll)
    assert found.reason == "too long"


def test_a_model_with_another_tokenizer_cannot_score(tmp_path, smollm2_directory):
    for name in ("config.json", "tokenizer_config.json", "generation_config.json"):
        (tmp_path / name).write_bytes((smollm2_directory / name).read_bytes())
    changed = (smollm2_directory / "tokenizer.json").read_text("utf-8").replace('"individual_digits": true', "")
    (tmp_path / "tokenizer.json").write_text(changed.replace('"type": "Digits", ', '"type": "Digits"'), "utf-8")
    with pytest.raises(UsageError, match="has another tokenizer"):
        score.scorer_of(Score(scorer="ngram", model=str(tmp_path)), Model(name_or_path="smollm2"))


@pytest.mark.parametrize("name", scorers.names())
def test_a_scorer_says_what_it_is_in_one_line(name):
    assert 20 < len(scorers.summary(name)) <= 120
