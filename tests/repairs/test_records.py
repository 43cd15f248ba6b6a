"""Repairs of the record, before its dialect reads it."""

from __future__ import annotations

import json

import pytest

from turnmill.errors import Rejected
from turnmill.repairs import Mending, repairs

U, A, F = "user", "assistant", "final"


@pytest.mark.parametrize(
    ("said", "turns"),
    [
        ([(U, 42), (A, "x")], [[U, "42"], [F, "x"]]),
        ([(U, "q"), (A, True)], [[U, "q"], [F, "true"]]),
        ([(U, "q"), (A, -0.5)], [[U, "q"], [F, "-0.5"]]),
        ([(U, "q"), (A, [{"type": "text", "text": 7}])], [[U, "q"], [F, "7"]]),
        ([(U, "q"), (A, 10**40)], [[U, "q"], [F, str(10**40)]]),
    ],
)
def test_scalars_become_json_text(mend, said, turns):
    mended = mend("coerce-scalars", said)
    assert (mended.outcome, mended.touched) == (turns, ["coerce-scalars"])


@pytest.mark.parametrize(
    ("record", "dialect", "mapping", "turns"),
    [
        ({"instruction": "Add", "input": 5, "output": 7}, "alpaca", {}, [[U, "Add\n\n5"], [F, "7"]]),
        ({"instruction": 1, "output": 2, "history": [[3, 4]]}, "alpaca", {}, [[U, "3"], [F, "4"], [U, "1"], [F, "2"]]),
        ({"i": 1, "output": False}, "alpaca", {"columns": {"instruction": "i"}}, [[U, "1"], [F, "false"]]),
        ({"conversations": [{"from": "human", "value": 1}, {"from": "gpt", "value": 2}], "system": 3}, "sharegpt", {},
         [["system", "3"], [U, "1"], [F, "2"]]),
        ({"log": [{"role": U, "say": 1}, {"role": A, "say": 2}]}, "openai",
         {"columns": {"messages": "log"}, "tags": {"content": "say"}}, [[U, "1"], [F, "2"]]),
    ],
)  # fmt: skip
def test_scalars_of_every_layout(mend, record, dialect, mapping, turns):
    assert mend("coerce-scalars", record, dialect, **mapping).outcome == turns


def test_objects_are_no_scalars(mend):
    with pytest.raises(Rejected, match="non-string-content"):
        mend("coerce-scalars", [(U, "q"), (A, {"answer": "x"})])


@pytest.mark.parametrize(
    "record", [{}, {"messages": None}, {"messages": [1, None, [2]]}, {"messages": [{}], "history": 3}, {"history": [4]}]
)
@pytest.mark.parametrize("name", ["coerce-scalars", "replace-surrogates", "parse-inline-calls"])
def test_odd_records_are_left_to_the_dialect(name, record):
    before = json.dumps(record)
    assert repairs.get(name)(record, Mending()) == record
    assert json.dumps(record) == before


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("x \ud83d y", "x \ufffd y"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("ok \U0001f600", "ok \U0001f600"),
        ("\\ud83d", "\\ud83d"),
    ],
)
def test_halves_of_pairs_are_replaced(mend, text, becomes):
    assert mend("replace-surrogates", [(U, text), (A, "a")]).outcome == [[U, becomes], [F, "a"]]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (r'{"city": "x \ud83d y", "n": 1.50}', "x \ufffd y"),
        (r'{"city": "x \ud83d\ude00 y", "n": 1.50}', "x \U0001f600 y"),
        (r'{"city": "x \\ud83d y", "n": 1.50}', r"x \ud83d y"),
    ],
)
def test_halves_inside_json_text_of_arguments_are_replaced(mend, arguments, value):
    call = {"role": A, "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    tools = [{"name": "f", "parameters": {}}]
    mended = mend("replace-surrogates", {"messages": [{"role": U, "content": "q"}, call], "tools": tools})
    assert mended.outcome[1] == ["call", "f", {"city": value, "n": 1.5}]


def test_keys_are_mended_too():
    assert repairs.get("replace-surrogates")({"a\ud83d": [{"b": "\ud83d"}]}, Mending()) == {
        "a\ufffd": [{"b": "\ufffd"}]
    }


CALL = '<tool_call>\n{"name": "f", "arguments": {"city": "Oslo"}}\n</tool_call>'
MADE = ["call", "f", {"city": "Oslo"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        (CALL, [MADE]),
        (f"I look.\n{CALL}\n", [["commentary", "I look."], MADE]),
        (f"<think>\nr\n</think>\n\n{CALL}", [["analysis", "r"], MADE]),
        (f"<think>\nr\n</think>{CALL}", [["analysis", "r"], MADE]),
        (f"{CALL}\n{CALL}", [MADE, MADE]),
        (CALL.replace('{"city": "Oslo"}', r'"{\"city\": \"Oslo\"}"'), [MADE]),
    ],
)
def test_inline_calls_become_calls(mend, text, turns):
    record = {"messages": [{"role": U, "content": "q"}, {"role": A, "content": text}], "tools": TOOLS}
    mended = mend("parse-inline-calls", record)
    assert (mended.outcome, mended.touched) == ([[U, "q"], *turns], ["parse-inline-calls"])


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL}\nThat is how you call.",
        f"Write {CALL}",
        "<tool_call>f(Oslo)</tool_call>",
        "<tool_call>\n{'name': 'f', 'arguments': {}}\n</tool_call>",
        '<tool_call>\n{"name": "f"}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {}}',
        f"{CALL}\n<tool_call>{{}}</tool_call>",
        f"First {CALL} then\n{CALL}",
    ],
)
def test_what_is_no_call_stays_text(mend, text):
    mended = mend("parse-inline-calls", [(U, "q"), (A, text)])
    assert (mended.outcome, mended.touched) == ([[U, "q"], [F, text]], [])


def test_a_row_of_inline_calls_and_wrapped_results(mend):
    result = "<tool_response>\n5C\n</tool_response>"
    said = [("human", "Oslo?"), ("gpt", CALL), ("tool", result), ("gpt", "It is 5C.")]
    record = {"conversations": [{"from": who, "value": text} for who, text in said], "tools": TOOLS}
    mended = mend("parse-inline-calls", record, "sharegpt")
    assert mended.outcome == [[U, "Oslo?"], MADE, ["result", "f", "5C"], [F, "It is 5C."]]


def test_a_users_call_is_text(mend):
    assert mend("parse-inline-calls", [(U, CALL), (A, "a")]).touched == []
