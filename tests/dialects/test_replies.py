"""Calls and their results: matched by id, by name or by place, and put into call order."""

from __future__ import annotations

import pytest

from turnmill.contract import check
from turnmill.dialects import Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected

TOOLS = [{"name": name, "parameters": {}} for name in "fg"]
USER, ANSWER = {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}


def calls(*specs: str, **fields) -> dict:
    """An assistant's message that calls: `f1` is a call to f with the id 1, `f` one without id."""
    made = [{"id": spec[1:] or None, "function": {"name": spec[0], "arguments": {}}} for spec in specs]
    return {"role": "assistant", "tool_calls": made, **fields}


def result(spec: str) -> dict:
    """A tool's message: `f1=text` names f and answers the id 1; either may be missing."""
    who, _, text = spec.partition("=")
    name, id = "".join(c for c in who if c.isalpha()), "".join(c for c in who if c.isdigit())
    return {"role": "tool", "content": text, "name": name or None, "tool_call_id": id or None}


def read(messages: list, reading: Reading | None = None):
    record = {"messages": [USER, *messages, ANSWER], "tools": TOOLS}
    return convert(record, dialects.get("openai"), reading or Reading())


@pytest.mark.parametrize(
    ("made", "results", "order"),
    [
        (["f1"], ["1=x"], ["f=x"]),
        (["f1"], ["=x"], ["f=x"]),
        (["f"], ["f=x"], ["f=x"]),
        (["f"], ["=x"], ["f=x"]),
        (["f1", "g2"], ["2=y", "1=x"], ["f=x", "g=y"]),
        (["f1", "f2"], ["2=y", "1=x"], ["f=x", "f=y"]),
        (["f1", "g2"], ["g=y", "f=x"], ["f=x", "g=y"]),
        (["f", "f"], ["=x", "=y"], ["f=x", "f=y"]),
        (["f", "f"], ["f=x", "f=y"], ["f=x", "f=y"]),
        (["f1", "g2"], ["g=y", "1=x"], ["f=x", "g=y"]),
        (["f1", "g2"], ["=x", "2=y"], ["f=x", "g=y"]),
        (["f1", "g2", "f3"], ["3=z", "g=y", "=x"], ["f=x", "g=y", "f=z"]),
    ],
)
def test_results_follow_in_call_order(made, results, order):
    reading = Reading()
    conversation = check(read([calls(*made), *map(result, results)], reading))
    said = [f"{turn[1]}={turn[2]}" for turn in neutral_turns(conversation) if turn[0] == "result"]
    assert said == order
    assert reading.counts["read/replies-reordered"] == (order[0][-1] != results[0][-1])


@pytest.mark.parametrize(
    ("made", "results", "code", "at"),
    [
        (["f1"], ["9=x"], "tool-reply-unmatched", 2),
        (["f"], ["1=x"], "tool-reply-unmatched", 2),
        (["f1"], ["1=x", "1=y"], "tool-reply-unmatched", 3),
        (["f1"], ["=x", "=y"], "tool-reply-unmatched", 3),
        (["f1"], ["g=x"], "tool-reply-unmatched", 2),
        (["f1"], ["g1=x"], "tool-reply-name-differs", 2),
        (["f1", "g2"], ["=x"], "tool-reply-ambiguous", 2),
        (["f1", "f2"], ["f=x"], "tool-reply-ambiguous", 2),
        (["f1", "f2"], ["f=x", "f=y", "f=z"], "tool-reply-unmatched", 4),
    ],
)
def test_results_that_fit_no_call_are_refused(made, results, code, at):
    with pytest.raises(Rejected) as caught:
        read([calls(*made), *map(result, results)])
    assert (caught.value.code, caught.value.at) == (code, at)


def test_ids_may_come_again_in_a_later_turn():
    twice = [calls("f1"), result("1=x"), calls("g1"), result("1=y")]
    assert [turn[1:] for turn in neutral_turns(read(twice)) if turn[0] == "result"] == [["f", "x"], ["g", "y"]]


def test_one_turn_may_be_recorded_as_several_messages():
    reading = Reading()
    spread = [calls("f1"), calls("g2", content="and"), result("2=y"), result("1=x")]
    conversation = check(read(spread, reading))
    assert [turn[:2] for turn in neutral_turns(conversation)] == [
        ["user", "q"],
        ["commentary", "and"],
        ["call", "f"],
        ["call", "g"],
        ["result", "f"],
        ["result", "g"],
        ["final", "a"],
    ]
    assert reading.counts["read/text-moved-before-calls"] == 1


def test_an_answer_behind_unanswered_calls_stays_there_and_is_refused():
    conversation = read([calls("f1")])
    assert [turn[0] for turn in neutral_turns(conversation)] == ["user", "call", "final"]
    with pytest.raises(Rejected) as caught:
        check(conversation)
    assert (caught.value.code, caught.value.at) == ("text-before-replies", 2)


def test_a_function_message_answers_a_function_call():
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "x"},
    ]
    assert neutral_turns(check(read(messages)))[1:3] == [["call", "f", {}], ["result", "f", "x"]]


def test_a_result_speaks_as_its_tool_to_the_assistant():
    message = read([calls("f1"), result("1=x")]).messages[2]
    assert (message.role, message.channel, message.name, message.recipient, message.recorded) == (
        "tool", "commentary", "functions.f", "assistant", 2,
    )  # fmt: skip
