"""The border of a dialect: what a record breaks is the record's fault, what we break stays a bug."""

from __future__ import annotations

import datetime

import pytest

from turnmill.conversation import Conversation
from turnmill.dialects import Reading, convert, dialects
from turnmill.errors import Rejected


def raising(error: BaseException):
    def dialect(record, reading) -> Conversation:
        raise error

    return dialect


@pytest.mark.parametrize(
    "error",
    [
        ValueError("v"),
        KeyError("k"),
        TypeError("t"),
        RecursionError("r"),
        UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    ],
)
def test_faults_of_the_record_become_rejections(error):
    with pytest.raises(Rejected) as caught:
        convert({}, raising(error), Reading())
    assert caught.value.code == "conversion-failed"
    assert type(error).__name__ in caught.value.message


@pytest.mark.parametrize("error", [AttributeError("bug"), IndexError("bug"), ZeroDivisionError("bug")])
def test_bugs_stay_bugs(error):
    with pytest.raises(type(error)):
        convert({}, raising(error), Reading())


@pytest.mark.parametrize("record", [None, [], "text", 3])
def test_a_record_is_an_object(record):
    with pytest.raises(Rejected) as caught:
        convert(record, dialects.get("openai"), Reading())
    assert caught.value.code == "record-not-object"


def test_values_that_json_does_not_have_fail_the_conversion():
    call = {"name": "f", "arguments": {"day": datetime.date(2025, 1, 1)}}
    record = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [call]}]}
    with pytest.raises(Rejected) as caught:
        convert(record, dialects.get("openai"), Reading())
    assert caught.value.code == "conversion-failed"
