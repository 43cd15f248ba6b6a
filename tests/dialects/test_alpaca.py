from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected


def read(record: dict, mapping: Mapping | None = None):
    return convert(record, dialects.get("alpaca"), Reading(mapping or Mapping()))


@pytest.mark.parametrize(
    ("record", "turns"),
    [
        ({"instruction": "i", "output": "o"}, [["user", "i"], ["final", "o"]]),
        ({"instruction": "i", "input": "", "output": "o"}, [["user", "i"], ["final", "o"]]),
        ({"instruction": "i", "input": None, "output": "o"}, [["user", "i"], ["final", "o"]]),
        ({"instruction": "i\n", "input": " x", "output": "o\n"}, [["user", "i\n\n\n x"], ["final", "o\n"]]),
        ({"instruction": "", "input": "x", "output": "o"}, [["user", "x"], ["final", "o"]]),
        ({"instruction": "", "input": "", "output": "o"}, [["final", "o"]]),
        ({"instruction": "i", "output": "o", "system": "s"}, [["system", "s"], ["user", "i"], ["final", "o"]]),
        (
            {"instruction": "i", "output": "o", "history": [["q1", "a1"], ["q2", "a2"]]},
            [["user", "q1"], ["final", "a1"], ["user", "q2"], ["final", "a2"], ["user", "i"], ["final", "o"]],
        ),
        ({"instruction": "i", "output": "<think>r</think>o"}, [["user", "i"], ["analysis", "r"], ["final", "o"]]),
        ({"instruction": "i", "output": ""}, [["user", "i"], ["final", ""]]),
        ({"instruction": "i"}, [["user", "i"]]),
        ({"instruction": " ", "output": "o"}, [["user", " "], ["final", "o"]]),
    ],
)
def test_fields_become_turns(record, turns):
    assert neutral_turns(read(record)) == turns


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({}, "no-messages"),
        ({"text": "x"}, "no-messages"),
        ({"instruction": "i", "input": 5, "output": "o"}, "non-string-content"),
        ({"instruction": "i", "output": 7}, "non-string-content"),
        ({"instruction": "i", "output": ["o", "p"]}, "non-string-content"),
        ({"instruction": "i", "output": "o", "system": 1}, "non-string-content"),
        ({"instruction": "i", "output": "o", "history": ["q", "a"]}, "history-malformed"),
        ({"instruction": "i", "output": "o", "history": [["q", 1]]}, "non-string-content"),
        ({"instruction": "i", "output": "o", "history": "q"}, "history-malformed"),
    ],
)
def test_faults(record, code):
    with pytest.raises(Rejected) as caught:
        read(record)
    assert caught.value.code == code


def test_columns_are_mapped():
    mapping = Mapping({"instruction": "prompt", "input": "query", "output": "response"})
    assert neutral_turns(read({"prompt": "p", "query": "q", "response": "r"}, mapping)) == [
        ["user", "p\n\nq"],
        ["final", "r"],
    ]


def test_texts_are_numbered_history_first():
    record = {"system": "s", "history": [["q1", "a1"]], "instruction": "i", "output": "o"}
    assert [message.recorded for message in read(record).messages] == [-1, 0, 1, 2, 3]


@given(st.text(), st.text(), st.text())
def test_no_character_of_plain_text_changes(instruction, question, answer):
    record = {"instruction": instruction, "output": answer, "history": [[question, answer]]}
    assert [message.text for message in read(record).messages] == [
        question,
        answer,
        *([instruction] if instruction else []),
        answer,
    ]
