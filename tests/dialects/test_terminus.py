"""Terminus: the JSON object is the reply, and nothing around it."""

from __future__ import annotations

import json
import time
from collections import Counter

import pytest

from turnmill.contract import check
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.detect import detect
from turnmill.dialects.neutral import neutral_turns
from turnmill.dialects.terminus import find_reply
from turnmill.errors import Rejected

REPLY = '{"analysis": "x", "plan": "y",\n  "commands": [{"keystrokes": "ls\\n", "duration": 0.1}]}'
DONE = '{"commands": [], "task_complete": true}'


def record(*answers: str, column: str = "messages", end: str = "") -> dict:
    messages = [{"role": "user", "content": "task"}]
    for number, answer in enumerate(answers):
        messages += [{"role": "user", "content": f"screen {number}"}] if number else []
        messages.append({"role": "assistant", "content": answer})
    return {column: messages + ([{"role": "user", "content": end}] if end else [])}


def read(row: dict, counts: Counter[str] | None = None):
    reading = Reading(counts=Counter() if counts is None else counts)
    return check(convert(row, dialects.get("terminus"), reading))


@pytest.mark.parametrize(
    ("answer", "turns", "dropped"),
    [
        (REPLY, [["final", REPLY]], 0),
        (f"\n{REPLY}\n", [["final", REPLY]], 0),
        (f"Sure:\n```json\n{REPLY}\n```", [["final", REPLY]], 1),
        (f"{{}} and {{\"a\": 1}} then {REPLY}", [["final", REPLY]], 1),
        (f"<think>\nr\n</think>\n{REPLY}", [["analysis", "r"], ["final", REPLY]], 0),
        (f"<think>{{\"commands\": []}}</think>{REPLY}", [["analysis", '{"commands": []}'], ["final", REPLY]], 0),
    ],
)  # fmt: skip
def test_the_object_is_the_reply_as_recorded(answer, turns, dropped):
    counts: Counter[str] = Counter()
    assert neutral_turns(read(record(answer), counts))[1:] == turns
    assert counts["read/terminus-prose-dropped"] == dropped


def test_what_the_terminal_showed_is_the_users_and_the_last_of_it_is_dropped():
    counts: Counter[str] = Counter()
    row = read(record(REPLY, DONE, end="screen"), counts)
    assert [turn[0] for turn in neutral_turns(row)] == ["user", "final", "user", "final"]
    assert counts["read/trace-tail-dropped"] == 1


def test_the_original_keeps_the_think_block_and_loses_the_prose():
    row = read(record(f"<think>\nr\n</think>\nSure: {REPLY} So."))
    assert row.verbatim == {1: f"<think>\nr\n</think>\n{REPLY}"}


@pytest.mark.parametrize("answer", ["I will look.", '{"commands": "ls"}', '{"plan": []}', REPLY[:-1], "{" * 5_000])
def test_a_reply_without_commands_rejects_the_row(answer):
    with pytest.raises(Rejected) as caught:
        read(record(answer))
    assert (caught.value.code, caught.value.at) == ("terminus-without-commands", 1)


def test_looking_for_the_object_ends():
    began = time.perf_counter()
    assert find_reply('{"a":' * 200_000) is None
    assert time.perf_counter() - began < 10


@pytest.mark.parametrize("column", ["messages", "conversations"])
def test_it_is_told_by_its_replies(column):
    assert detect([record(REPLY, column=column)] * 2 + [record("prose", column=column)], Mapping()).name == "terminus"


def test_some_such_answers_among_others_are_a_chat():
    assert detect([record(REPLY), record("a"), record("b")], Mapping()).name == "openai"


def test_users_may_show_the_form_of_replies():
    asked = {"messages": [{"role": "user", "content": f"Answer as {REPLY}"}, {"role": "assistant", "content": "ok"}]}
    assert detect([asked], Mapping()).name == "openai"


def test_names_of_sharegpt_are_read_too():
    row = {"conversations": [{"from": "human", "value": "task"}, {"from": "gpt", "value": REPLY}]}
    assert detect([row], Mapping()).name == "terminus"
    assert json.loads(read(row).messages[1].text)["plan"] == "y"
