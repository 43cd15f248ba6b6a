"""The dialect `turnmill`: canonical rows, read back into the conversations that they were written from."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.conversation import Checked, Conversation, Message, recorded_json
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.canonical import MADE_ANEW
from turnmill.dialects.detect import detect
from turnmill.errors import Rejected, UnknownName
from turnmill.files.canonical import COLUMNS, to_row, to_table
from turnmill.files.parquet import _row

read_back = dialects.get("turnmill")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**21), 10**21) | st.sampled_from([1e5, 1e-7, 0.1, 1e300]) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, min_size=1, max_size=4)
weights = st.none() | st.sampled_from([0.0, 1.0, 0.25])
indexes = st.integers(-1, 5)
asked = st.builds(
    Message, st.sampled_from(["system", "developer", "user"]), texts, name=st.none() | texts, recorded=indexes
)
channels = st.sampled_from(["analysis", "commentary", "final"])
said = st.builds(Message, st.just("assistant"), texts, channels, st.none() | texts, weight=weights, recorded=indexes)
calls = st.builds(
    Message,
    st.just("assistant"),
    objects.map(recorded_json),
    st.just("commentary"),
    recipient=st.just("functions.f"),
    weight=weights,
    recorded=indexes,
)
results = st.builds(
    Message,
    st.just("tool"),
    texts,
    st.just("commentary"),
    st.just("functions.f"),
    st.just("assistant"),
    weight=weights,
    recorded=indexes,
)
conversations = st.builds(
    Conversation,
    messages=st.lists(asked | said | calls | results, min_size=1, max_size=5).map(tuple),
    tools=st.lists(objects, max_size=3).map(tuple),
    template_kwargs=st.dictionaries(texts.map("my_{}".format), values, max_size=3) | st.just({"enable_thinking": "on"}),
    source=texts,
    source_id=st.none() | texts,
    verbatim=st.dictionaries(st.integers(0, 5), texts, max_size=2),
    meta=st.fixed_dictionaries({"source_file": texts, "source_line": st.integers(1, 9)}, optional={"kept": values}),
)
GOOD: dict[str, Any] = to_row(
    Conversation((Message("user", "q", recorded=0), Message("assistant", "a", "final", recorded=1)))
) | {"source_line": 1}


def as_read(row: Conversation) -> dict[str, Any]:
    """The record that the reader of Parquet files gives for a canonical row."""
    stored = io.BytesIO()
    pq.write_table(to_table([Checked(row)], ["kept"]), stored)
    found = _row(pq.read_table(stored).to_pylist()[0], 1 << 20, Counter())
    assert found.value is not None
    return found.value


@given(conversations)
@settings(deadline=None, max_examples=200)
def test_a_canonical_row_is_the_conversation_that_it_was_written_from(row: Conversation) -> None:
    reading = Reading(fractional=True, keep_columns=("kept",))
    again = convert(as_read(row), read_back, reading)
    kept = {"kept": row.meta["kept"]} if "kept" in row.meta else {}
    assert again == msgspec.structs.replace(row, source="", meta=kept)
    assert again.id == row.id
    written, first = to_row(again, ["kept"]), to_row(row, ["kept"])
    assert {key: value for key, value in written.items() if key not in MADE_ANEW} == {
        key: value for key, value in first.items() if key not in MADE_ANEW
    }
    assert not [name for name in reading.counts if "undeclared" in name]


@given(conversations)
@settings(deadline=None, max_examples=50)
def test_auto_tells_a_canonical_row(row: Conversation) -> None:
    assert detect([as_read(row)], Mapping()).name == "turnmill"


def test_what_is_made_anew_is_a_column() -> None:
    assert set(MADE_ANEW) < set(COLUMNS)


@pytest.mark.parametrize(
    "change",
    [
        {"chat_template_kwargs": None},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"messages": [{"role": "user", "content": "q"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "q", "index": 0}]}]},
        {"source_line": None},
    ],
)
def test_a_row_without_a_mark_of_turnmill_s_is_another_dialect_s(change) -> None:
    row = {key: value for key, value in (GOOD | change).items() if value is not None}
    assert detect([row], Mapping()).name in ("openai", "harmony")


def test_preference_columns_that_were_kept_do_not_hide_it() -> None:
    assert detect([GOOD | {"chosen": "[]", "rejected": "[]"}], Mapping()).name == "turnmill"


USER = {"role": "user", "content": [{"type": "text", "text": "q"}]}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"messages": []}, "no-messages"),
        ({"messages": "[]"}, "messages-not-list"),
        ({"messages": ["q"], "recorded": None}, "message-not-object"),
        ({"messages": [USER | {"role": None}]}, "no-speaker"),
        ({"messages": [USER | {"channel": "loud"}]}, "channel-invalid"),
        ({"messages": [USER | {"recipient": 1}]}, "name-not-text"),
        ({"messages": [USER | {"content": "q"}]}, "canonical-row-malformed"),
        ({"messages": [USER | {"content": USER["content"] * 2}]}, "canonical-row-malformed"),
        ({"weights": [1.0]}, "canonical-row-malformed"),
        ({"weights": [None, 0.5]}, "weight-not-0-or-1"),
        ({"recorded": [0]}, "canonical-row-malformed"),
        ({"recorded": [0, "1"]}, "canonical-row-malformed"),
        ({"verbatim": "{"}, "canonical-row-malformed"),
        ({"verbatim": '{"a": "b"}'}, "canonical-row-malformed"),
        ({"verbatim": '{"1": 2}'}, "canonical-row-malformed"),
        ({"verbatim": {"1": "b"}}, "canonical-row-malformed"),
        ({"source_train_turns": "[0"}, "canonical-row-malformed"),
        ({"source_id": 1}, "id-not-text"),
        ({"chat_template_kwargs": "{"}, "template-kwargs-invalid"),
        ({"chat_template_kwargs": '{"tools": {}, "tools": []}'}, "template-kwargs-invalid"),
        ({"chat_template_kwargs": '{"tools": 1}'}, "tools-not-list"),
    ],
)
def test_a_row_that_somebody_damaged_is_rejected(change, code) -> None:
    with pytest.raises(Rejected) as caught:
        convert(GOOD | change, read_back, Reading())
    assert caught.value.code == code


def test_recorded_turns_to_train_are_kept_unasked_and_other_annotations_are_named() -> None:
    reading = Reading()
    row = convert(GOOD | {"source_train_turns": "[0]", "topic": '"tea"'}, read_back, reading)
    assert (row.meta, reading.counts) == ({"source_train_turns": [0]}, {"read/undeclared-column/topic": 1})


@pytest.mark.parametrize("mapping", [Mapping({"messages": "dialog"}), Mapping(tags={"role": "speaker"})])
def test_there_is_nothing_to_map(mapping) -> None:
    with pytest.raises(UnknownName):
        convert(GOOD, read_back, Reading(mapping))


def test_stored_arguments_keep_their_keys_and_numbers() -> None:
    tools = '"tools": [{"name": "f", "parameters": {"b": 12345678901234567890123}}]'
    stored = f'{{"z": 1, "a": 100000.0, "enable_thinking": false, {tools}}}'
    row = convert(GOOD | {"chat_template_kwargs": stored}, read_back, Reading())
    assert to_row(row)["chat_template_kwargs"] == stored
