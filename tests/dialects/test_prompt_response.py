from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.dialects.prompt_response import PROMPTS, RESPONSES
from turnmill.errors import Rejected, UnknownName

ASKED, ANSWERED = ["user", "q"], ["final", "a"]
USER, ANSWER = {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}
CALL = {"name": "f", "arguments": {"n": 1}}


def read(record: dict, reading: Reading | None = None, **columns: str):
    return convert(record, dialects.get("prompt-response"), reading or Reading(Mapping(columns)))


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("response", RESPONSES)
def test_each_side_has_its_usual_names(prompt, response):
    assert neutral_turns(read({prompt: "q", response: "a"})) == [ASKED, ANSWERED]


@pytest.mark.parametrize(
    ("record", "turns"),
    [
        ({"prompt": " q\n", "response": "a\n"}, [["user", " q\n"], ["final", "a\n"]]),
        ({"prompt": "q", "response": "<think>\nr\n</think>\n\na"}, [ASKED, ["analysis", "r"], ANSWERED]),
        ({"prompt": "q", "response": "a", "system": "s"}, [["system", "s"], ASKED, ANSWERED]),
        ({"system_prompt": "s", "question": "q", "response": "a"}, [["system", "s"], ASKED, ANSWERED]),
        ({"instruction": "q", "input": "", "response": "a"}, [ASKED, ANSWERED]),
        ({"prompt": "q", "question": None, "answer": "a"}, [ASKED, ANSWERED]),
        ({"query": "q", "response": "a", "history": [["p", "b"]]}, [["user", "p"], ["final", "b"], ASKED, ANSWERED]),
        ({"prompt": [USER], "completion": [ANSWER]}, [ASKED, ANSWERED]),
        ({"input": [USER], "output": "a"}, [ASKED, ANSWERED]),
        ({"prompt": "q", "completion": [ANSWER]}, [ASKED, ANSWERED]),
        ({"prompt": [{"from": "human", "value": "q"}], "completion": [{"from": "gpt", "value": "a"}]},
         [ASKED, ANSWERED]),
        ({"prompt": "q", "response": ""}, [ASKED, ["final", ""]]),
        ({"prompt": "q"}, [ASKED]),
        ({"response": "a"}, [ANSWERED]),
        ({"prompt": "q", "response": "a", "context": ""}, [ASKED, ANSWERED]),
    ],
)  # fmt: skip
def test_columns_become_turns(record, turns):
    assert neutral_turns(read(record)) == turns


@pytest.mark.parametrize(
    ("record", "columns", "turns"),
    [
        ({"q": "q", "a": "a"}, {"prompt": "q", "response": "a"}, [ASKED, ANSWERED]),
        ({"problem": "q", "solution": "a", "answer": "4"}, {"response": "solution"}, [ASKED, ANSWERED]),
        ({"question": "q", "context": "c", "answer": "a"}, {"context": "context"}, [["user", "q\n\nc"], ANSWERED]),
        ({"problem": "q", "trace": "r", "solution": "a"}, {"reasoning": "trace"}, [ASKED, ["analysis", "r"], ANSWERED]),
        ({"query": "q", "answers": [CALL]}, {"calls": "answers"}, [ASKED, ["call", "f", {"n": 1}]]),
        ({"talk": [{"input": "q", "output": "a"}]}, {"history": "talk"}, [ASKED, ANSWERED]),
    ],
)
def test_the_mapping_says_which_column_counts(record, columns, turns):
    assert neutral_turns(read(record, **columns)) == turns


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({}, "no-messages"),
        ({"text": "x"}, "no-messages"),
        ({"prompt": "q", "question": "p", "answer": "a"}, "ambiguous-columns"),
        ({"problem": "q", "solution": "a", "answer": "4"}, "ambiguous-columns"),
        ({"question": "q", "context": "c", "answer": "a"}, "ambiguous-columns"),
        ({"prompt": "q", "response": 7}, "non-string-content"),
        ({"prompt": "q", "response": ["a", "b"]}, "non-string-content"),
        ({"prompt": ["q"], "response": "a"}, "non-string-content"),
        ({"prompt": {"q": 1}, "response": "a"}, "non-string-content"),
        ({"prompt": "q", "response": "a", "system": 1}, "non-string-content"),
        ({"prompt": "q", "response": "a", "system": "s", "system_prompt": "t"}, "twin-keys-disagree"),
        ({"prompt": "q", "response": "a", "history": ["q", "a"]}, "history-malformed"),
        ({"prompt": [{"role": "bing", "content": "x"}], "completion": "a"}, "unknown-speaker"),
    ],
)
def test_faults(record, code):
    with pytest.raises(Rejected) as caught:
        read(record)
    assert caught.value.code == code


def test_an_answer_in_the_prompt_is_context_and_does_not_train():
    reading = Reading()
    conversation = read({"prompt": [USER, {**ANSWER, "weight": 1}, USER], "completion": [ANSWER]}, reading)
    assert [message.weight for message in conversation.messages] == [None, 0.0, None, None]
    assert [message.recorded for message in conversation.messages] == [0, 1, 2, 3]
    assert reading.counts["read/prompt-untrained"] == 1


def test_columns_that_nobody_declared_are_named():
    reading = Reading()
    read({"question": "q", "answer": "a", "reasoning": "on", "score": 4}, reading)
    assert set(reading.counts) == {"read/undeclared-column/reasoning", "read/undeclared-column/score"}


def test_a_mapping_to_nothing_is_the_users_fault_not_the_rows():
    with pytest.raises(UnknownName, match="Did you mean 'prompt'"):
        read({"q": "q"}, promt="q")


@given(st.text(), st.text())
def test_no_character_of_plain_text_changes(question, answer):
    assert [message.text for message in read({"prompt": question, "response": answer}).messages] == [
        *([question] if question else []),
        answer,
    ]
