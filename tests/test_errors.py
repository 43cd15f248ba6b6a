from __future__ import annotations

import pickle

import pytest

from turnmill.errors import HealthError, Rejected, StaleError, TurnmillError, UnknownName, UsageError, quote


@pytest.mark.parametrize(("error", "code"), [(UsageError, 2), (HealthError, 3), (StaleError, 4), (TurnmillError, 1)])
def test_exit_codes(error, code) -> None:
    assert error("x").exit_code == code


def test_a_rejection_names_its_message() -> None:
    assert str(Rejected("blank-text", "nothing said", at=2)) == "blank-text: nothing said (message 2)"
    assert str(Rejected("blank-text", "nothing said")) == "blank-text: nothing said"


@pytest.mark.parametrize(
    "error", [Rejected("blank-text", "x", at=1), UnknownName("dialect", "x", ["y"], next_step="turnmill list dialects")]
)
def test_errors_cross_processes(error) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_an_unknown_name_lists_the_known_ones() -> None:
    error = UnknownName("dialect", "sharegtp", ["sharegpt", "alpaca"])
    assert str(error) == "unknown dialect 'sharegtp'. Did you mean 'sharegpt'? Known: alpaca, sharegpt."


@pytest.mark.parametrize(("length", "shown"), [(10, 12), (78, 80), (500, 80)])
def test_a_message_shows_at_most_80_characters_of_a_row(length, shown) -> None:
    assert len(quote("x" * length)) == shown
