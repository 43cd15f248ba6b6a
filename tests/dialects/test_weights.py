"""Recorded loss weights in every spelling, and rows that list the turns to train."""

from __future__ import annotations

import pytest

from turnmill.dialects import Reading, convert, dialects
from turnmill.errors import Rejected

SPELLINGS = ("weight", "loss", "loss_mask", "train", "trainable", "loss_weight", "loss_scale")


def read(*assistants: dict, reading: Reading | None = None, **columns):
    messages = []
    for assistant in assistants:
        messages += [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", **assistant}]
    return convert({"messages": messages, **columns}, dialects.get("openai"), reading or Reading())


def weights(*assistants: dict, reading: Reading | None = None, **columns) -> list[float | None]:
    return [message.weight for message in read(*assistants, reading=reading, **columns).messages[1::2]]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("value", "weight"), [(True, 1), (1, 1), (1.0, 1), ("1", 1), (False, 0), (0, 0), ("0", 0), (None, None)]
)
def test_every_spelling_is_read(spelling, value, weight):
    assert weights({spelling: value}) == [weight]


def test_spellings_that_agree_are_one_weight():
    assert weights({"weight": 0, "train": False, "loss": None}) == [0]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"weight": 0, "train": True}, "weights-disagree"),
        ({"weight": 0.5}, "weight-not-0-or-1"),
        ({"weight": 2}, "weight-not-0-or-1"),
        ({"weight": -1}, "weight-negative"),
        ({"weight": float("nan")}, "weight-not-finite"),
        ({"weight": float("inf")}, "weight-not-finite"),
        ({"weight": 10**400}, "weight-not-finite"),
        ({"weight": "high"}, "weight-not-a-number"),
        ({"loss_mask": [0, 1]}, "weight-not-a-number"),
    ],
)
def test_weights_that_say_nothing_clear_are_refused(fields, code):
    with pytest.raises(Rejected) as caught:
        weights(fields)
    assert (caught.value.code, caught.value.at) == (code, 1)


@pytest.mark.parametrize(("value", "weight"), [(0.5, 0.5), (3, 3), (0, 0)])
def test_fractions_are_admitted_on_demand(value, weight):
    assert weights({"weight": value}, reading=Reading(fractional=True)) == [weight]


@pytest.mark.parametrize("value", [-0.5, float("inf")])
def test_fractional_still_refuses_what_is_no_weight(value):
    with pytest.raises(Rejected):
        weights({"weight": value}, reading=Reading(fractional=True))


def test_a_users_weight_is_ignored_and_counted():
    reading = Reading()
    messages = [{"role": "user", "content": "q", "weight": 7}, {"role": "assistant", "content": "a"}]
    conversation = convert({"messages": messages}, dialects.get("openai"), reading)
    assert conversation.messages[0].weight is None
    assert reading.counts == {"read/weight-ignored": 1}


def test_calls_and_results_carry_their_messages_weight():
    call = {"function": {"name": "f", "arguments": {}}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "c", "reasoning": "r", "tool_calls": [call], "weight": 0},
        {"role": "tool", "content": "x", "weight": 0},
        {"role": "assistant", "content": "a", "weight": 1},
    ]
    conversation = convert({"messages": messages}, dialects.get("openai"), Reading())
    assert [message.weight for message in conversation.messages] == [None, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("turns", "fields", "expected"),
    [
        ([1], [{}, {}], [0, None]),
        ([0, 1], [{}, {}], [None, None]),
        ([], [{}, {}], [0, 0]),
        ([0, 1], [{"weight": 0}, {"weight": 1}], [0, 1]),
        ([0], [{}, {"weight": 1}], [None, 0]),
        ([False, False, False, True], [{}, {}], [0, None]),
        ([True, True, True, True], [{}, {"weight": 0}], [None, 0]),
        (None, [{}, {}], [None, None]),
    ],
)
def test_train_turns_counts_assistant_messages(turns, fields, expected):
    conversation = read(*fields, train_turns=turns)
    assert [message.weight for message in conversation.messages[1::2]] == expected
    assert conversation.meta == ({} if turns is None else {"source_train_turns": turns})


@pytest.mark.parametrize(
    ("turns", "code"),
    [
        ([2], "train-turns-out-of-range"),
        ([-1], "train-turns-out-of-range"),
        ("0", "train-turns-invalid"),
        ([True], "train-turns-invalid"),
        ([True, True, True, 1], "train-turns-invalid"),
        ([0.0], "train-turns-invalid"),
    ],
)
def test_train_turns_that_name_no_turn_are_refused(turns, code):
    with pytest.raises(Rejected) as caught:
        read({}, {}, train_turns=turns)
    assert caught.value.code == code
