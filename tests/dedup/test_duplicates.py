from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dedup_at_once import duplicates, exact_duplicates
from turnmill.conversation import Conversation, Message
from turnmill.dedup import (
    Entry,
    Near,
    Place,
    exchange_key,
    near_duplicates,
    weights_key,
)  # fmt: skip
from turnmill.dedup.near import NearPair

ENTRIES = st.lists(
    st.builds(Entry, st.sampled_from("xyz"), st.sampled_from(["", "0.0"]), st.builds(Place, *[st.integers(0, 2)] * 3)),
    unique_by=lambda entry: entry.place,
)


def entry(id: str, line: int, *, source: int = 0, file: str = "a", weights: str = "") -> Entry:
    return Entry(id, weights, Place(source, file, line))


@pytest.mark.parametrize(
    ("entries", "losers"),
    [
        ([entry("x", 1), entry("y", 2)], []),
        ([entry("x", 1), entry("x", 2), entry("x", 3)], [(2, 1, "duplicate"), (3, 1, "duplicate")]),
        ([entry("x", 10), entry("x", 9)], [(10, 9, "duplicate")]),
        ([entry("x", 1, source=1), entry("x", 7)], [(1, 7, "duplicate")]),
        ([entry("x", 1, file="b"), entry("x", 7, file="a")], [(1, 7, "duplicate")]),
        ([entry("x", 1), entry("x", 2, weights="0.0")], [(2, 1, "duplicate-other-weights")]),
    ],
)
def test_the_lowest_place_stays(entries, losers):
    found = exact_duplicates(entries)
    assert [(loser.entry.place.line, loser.winner.place.line, loser.code) for loser in found] == losers


@given(ENTRIES, st.randoms())
def test_arrival_order_changes_nothing(entries, random):
    arrived = random.sample(entries, len(entries))
    assert exact_duplicates(arrived) == exact_duplicates(entries)


@given(ENTRIES)
def test_one_row_of_every_id_stays(entries):
    losers = [loser.entry for loser in exact_duplicates(entries)]
    assert sorted(entry.id for entry in entries if entry not in losers) == sorted({entry.id for entry in entries})


@pytest.mark.parametrize(
    ("weights", "key"),
    [([None, None], ""), ([None, 1.0], ""), ([None, 0.0], "1.0,0.0"), ([None, 0.5], "1.0,0.5")],
)
def test_weights_that_train_the_same_are_the_same(weights, key):
    messages = tuple(Message("assistant", "a", "final", weight=weight) for weight in weights)
    assert weights_key(Conversation(messages)) == key


def said(*texts: str, last: str = "") -> Conversation:
    roles = ("user", "assistant") * 3
    messages = [
        Message(role, text, "final" if role == "assistant" else None) for role, text in zip(roles, texts, strict=False)
    ]
    return Conversation(tuple(messages))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (("Hi", "Yo"), ("  hi\n", "yo"), True),
        (("Hi", "Yo"), ("Hi", "Yo", "More?", "No."), True),
        (("Hi", "Yo"), ("Hi", "Hello"), False),
        (("Hi", "Yo"), ("Ho", "Yo"), False),
    ],
)
def test_a_first_exchange_is_compared_without_case_and_space(one, other, is_same):
    assert (exchange_key(said(*one)) == exchange_key(said(*other))) == is_same


def test_a_call_is_part_of_the_first_exchange():
    call = Message("assistant", '{"a": 1}', "commentary", recipient="functions.f")
    other = Message("assistant", '{"a": 2}', "commentary", recipient="functions.f")
    assert exchange_key(Conversation((Message("user", "q"), call))) != exchange_key(
        Conversation((Message("user", "q"), other))
    )
    assert exchange_key(Conversation((Message("user", "q"),))) == ""


def test_exact_duplicates_leave_before_exchanges_are_compared():
    entries = [
        Entry("a", "", Place(0, "f", 1), "x"),
        Entry("b", "", Place(0, "f", 2), "x"),
        Entry("b", "", Place(0, "f", 3), "x"),
        Entry("c", "", Place(0, "f", 4), ""),
        Entry("d", "", Place(0, "f", 5), ""),
    ]
    found = [(loser.entry.place.line, loser.winner.place.line, loser.code) for loser in duplicates(entries, BOTH)]
    assert found == [(2, 1, "duplicate-first-exchange"), (3, 2, "duplicate")]
    assert duplicates(entries, ()) == []


BOTH = ("exact", "first-exchange")


def row(number: int, *, place: int | None = None, exchange: str = "", id: str | None = None) -> Entry:
    return Entry(id or f"id{number}", "", Place(0, "f", number if place is None else place), exchange, number)


def known(*pairs: tuple[int, int], same: tuple[tuple[int, ...], ...] = ()) -> Near:
    """Pairs of near rows, and sets of rows whose texts have the same n-grams."""
    texts = {number: number for pair in pairs for number in pair}
    texts |= {number: rows[0] for rows in same for number in rows}
    return Near([NearPair(*pair, 0.9) for pair in pairs], texts)


@pytest.mark.parametrize(
    ("near", "losers"),
    [
        (known(), []),
        (known((1, 2)), [(2, 1, 0.9)]),
        (known((1, 2), (1, 3), (2, 3)), [(2, 1, 0.9), (3, 1, 0.9)]),
        (known((1, 2), (2, 3)), [(2, 1, 0.9)]),  # 3 is near none that stays
        (known((1, 2), (2, 3), (3, 4)), [(2, 1, 0.9), (4, 3, 0.9)]),
        (known((1, 3), (2, 3)), [(3, 1, 0.9)]),
        (known(same=((1, 2, 4),)), [(2, 1, 1.0), (4, 1, 1.0)]),
        (known((1, 2), same=((2, 4),)), [(2, 1, 0.9), (4, 1, 0.9)]),
    ],
)
def test_a_row_leaves_for_a_lower_one_that_stays_and_is_near(near, losers):
    found = near_duplicates([row(number) for number in (3, 1, 4, 2)], near)
    assert [(one.entry.row, one.winner.row, one.similarity) for one in found] == losers
    assert {one.code for one in found} <= {"near-duplicate"}


def test_places_decide_and_not_the_numbers_of_rows():
    (loser,) = near_duplicates([row(1, place=9), row(2, place=3)], known((1, 2)))
    assert (loser.entry.row, loser.winner.row) == (1, 2)


def test_near_duplicates_are_looked_for_among_those_that_stay():
    rows = [row(1, exchange="x"), row(2, exchange="x"), row(3), row(4, id="id3")]
    near = known((2, 3), same=((3, 4),))
    found = [(one.entry.row, one.winner.row, one.code) for one in duplicates(rows, (*BOTH, "near"), near)]
    assert found == [(2, 1, "duplicate-first-exchange"), (4, 3, "duplicate")]
    assert [one.entry.row for one in duplicates(rows, ("near",), near)] == [3, 4]


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1])))
def test_no_two_rows_that_stay_are_near_and_each_that_leaves_has_its_winner(pairs):
    found = near_duplicates(map(row, range(10)), known(*pairs))
    lost = {one.entry.row for one in found}
    assert all({first, second} & lost for first, second in pairs)
    assert all(one.winner.row not in lost and (one.winner.row, one.entry.row) in pairs for one in found)
