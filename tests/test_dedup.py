from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.conversation import Conversation, Message
from turnmill.dedup import Entry, Place, duplicates, exact_duplicates, exchange_key, weights_key

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
