from __future__ import annotations

import pytest

from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.detect import detect
from turnmill.dialects.writing import write_record
from turnmill.errors import Rejected, UnknownName, UsageError
from turnmill.options import Check

CHAT = Conversation((Message("user", "q", recorded=0), Message("assistant", "a", "final", recorded=1)))


def read(record: dict, **mapping) -> Conversation:
    return convert(record, dialects.get("text"), Reading(Mapping(**mapping), keep_columns=("url",)))


def refused(record: dict, **mapping) -> str:
    with pytest.raises(Rejected) as caught:
        check(read(record, **mapping))
    return caught.value.code


@pytest.mark.parametrize("text", ["x", " <think>r</think> a\r\n", "<|im_start|>user\nq", "\u2028a", "👩‍👩‍👧"])
def test_a_text_stays_as_it_is(text):
    found = check(read({"text": text, "id": 7, "url": "u"}), Check(max_turn_characters=1))
    assert found.messages == (Message("assistant", text, "text", recorded=0),)
    assert (found.source_id, found.meta, found.is_raw_text) == ("7", {"url": "u"}, True)


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"text": ""}, "blank-text"),
        ({"text": " \n"}, "blank-text"),
        ({"text": None}, "no-messages"),
        ({"content": "x"}, "no-messages"),
        ({"text": ["x"]}, "non-string-content"),
        ({"text": 3}, "non-string-content"),
        ({"text": "x", "id": [1]}, "id-not-text"),
        ({"text": "x", "images": ["a.png"]}, "non-text-content"),
    ],
)
def test_what_is_no_text_is_rejected(record, code):
    assert refused(record) == code


def test_a_column_is_mapped_and_a_message_key_is_not():
    assert read({"body": "x"}, columns={"text": "body"}).messages[0].text == "x"
    with pytest.raises(UnknownName):
        read({"text": "x"}, tags={"content": "body"})


def test_a_text_is_another_row_than_an_answer_of_the_same_words():
    answer = Conversation((Message("assistant", "x", "final", recorded=0),))
    assert read({"text": "x"}).id != answer.id


@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_only_the_assistant_says_a_raw_text(role):
    with pytest.raises(Rejected) as caught:
        check(Conversation((Message(role, "x", "text", recorded=0),)))
    assert caught.value.code == "channel-invalid"


def test_a_chat_has_no_raw_text_in_it():
    with pytest.raises(Rejected) as caught:
        check(Conversation((*CHAT.messages[:1], Message("assistant", "x", "text", recorded=1))))
    assert caught.value.code == "channel-invalid"


def test_is_written_and_read_back():
    assert write_record(read({"text": " x ", "id": "a"}), "text") == {"id": "a", "text": " x "}


@pytest.mark.parametrize(("dialect", "what"), [("openai", read({"text": "x"})), ("text", CHAT)])
def test_neither_is_written_as_the_other(dialect, what):
    with pytest.raises(Rejected, match="raw text") as caught:
        write_record(what, dialect)
    assert caught.value.code == "dialect-cannot-say"


@pytest.mark.parametrize(
    ("sample", "mapping"),
    [
        ([{"text": "x"}, {"text": "y", "url": "u", "title": "t"}], {}),
        ([{"text": "x", "label": 3}], {}),
        ([{"body": "x"}], {"text": "body"}),
        ([{"text": "### Heading\n\nHuman beings"}], {}),
    ],
)
def test_a_file_of_texts_alone_is_told(sample, mapping):
    assert detect(sample, Mapping(mapping)).name == "text"


@pytest.mark.parametrize(
    ("sample", "name"),
    [
        ([{"text": "rendered", "instruction": "i", "output": "o"}], "alpaca"),
        ([{"text": "x", "messages": [{"role": "user", "content": "q"}]}], "openai"),
        ([{"text": "x", "question": "q", "answer": "a"}], "prompt-response"),
        ([{"text": "<|start|>user<|message|>q<|end|>"}], "harmony"),
    ],
)
def test_a_text_beside_a_chat_is_no_raw_text(sample, name):
    assert detect(sample, Mapping()).name == name


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ([{"text": "x"}, {"messages": []}], "two dialects"),
        ([{"text": "x"}, {"prompt": "q", "response": "a"}], "two dialects"),
        ([{"text": "x", "prompt": "q"}], "text beside prompt"),
        ([{"text": "x", "target": "t"}], "target beside text"),
        ([{"text": "### Human: q### Assistant: a"}], "a chat written into one text"),
        ([{"text": "fine"}, {"text": "<|im_start|>user\nq<|im_end|>"}], "--dialect text"),
        ([{"text": "<s>[INST] q [/INST] a"}], "a chat written into one text"),
        ([{"text": "Hi.\n\nHuman: q\n\nAssistant: a"}], "a chat written into one text"),
    ],
)
def test_what_may_be_a_chat_is_refused(sample, said):
    with pytest.raises(UsageError, match=said):
        detect(sample, Mapping())
