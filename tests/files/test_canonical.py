import io
import json

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.conversation import Checked, Conversation, Message, recorded_json
from turnmill.files.canonical import COLUMNS, readmit, schema, text_sizes, to_table

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**21), 10**21) | st.sampled_from([1e5, 1e-7, 0.1, -0.0, 1e300]) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=4)
weights = st.none() | st.sampled_from([0.0, 1.0, 0.25])
spoken = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant"]),
    text=texts,
    channel=st.none() | st.sampled_from(["analysis", "commentary", "final"]),
    name=st.none() | texts,
    weight=weights,
    recorded=st.integers(-1, 5),
)
calls = st.builds(
    Message,
    role=st.just("assistant"),
    text=json_objects.map(recorded_json),
    channel=st.just("commentary"),
    recipient=st.just("functions.f"),
    weight=weights,
    recorded=st.integers(0, 5),
)
not_ours = st.text("abcxyz", min_size=1, max_size=4).map(lambda name: f"my_{name}")
rows = st.builds(
    Conversation,
    messages=st.lists(spoken | calls, min_size=1, max_size=5).map(tuple),
    tools=st.lists(json_objects, max_size=3).map(tuple),
    template_kwargs=st.dictionaries(not_ours, json_values, max_size=3)
    | st.just({"enable_thinking": "/think", "first": 1}),
    source=texts,
    source_id=st.none() | texts,
    verbatim=st.dictionaries(st.integers(0, 5), texts, max_size=2),
    meta=st.fixed_dictionaries(
        {"source_file": texts, "source_line": st.integers(1, 2**40), "row": st.integers(0, 2**40)},
        optional={"repairs": st.lists(texts, min_size=1, max_size=3), "kept": json_values},
    ),
)


def stored(table: pa.Table) -> pa.Table:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return pq.read_table(io.BytesIO(sink.getvalue()))


@given(st.lists(rows, max_size=4))
@settings(deadline=None)
def test_a_round_trip_keeps_everything(conversations: list[Conversation]) -> None:
    table = stored(to_table(map(Checked, conversations), ["kept"]))
    again = readmit(table)
    assert again == conversations
    assert [row.id for row in again] == [row.id for row in conversations] == table["id"].to_pylist()
    assert [list(map(repr, row.tools)) for row in again] == [list(map(repr, row.tools)) for row in conversations]


def test_different_tools_side_by_side_are_never_unified() -> None:
    schemas = [
        {"name": "f", "parameters": {"zip": 123456789012345678901}},
        {"name": "g", "parameters": {"b": None, "a": 1e5}},
    ]
    conversations = [Conversation((Message("user", "hi", recorded=0),), tools=(tool,)) for tool in schemas]
    texts = stored(to_table(map(Checked, conversations)))["chat_template_kwargs"].to_pylist()
    assert texts == [recorded_json({"enable_thinking": False, "tools": [tool]}) for tool in schemas]
    assert list(json.loads(texts[1])["tools"][0]["parameters"]) == ["b", "a"]


def test_trivial_columns_are_null() -> None:
    row = Conversation((Message("user", "hi", recorded=0), Message("assistant", "yo", "final", recorded=1)))
    stored_row = to_table([Checked(row)]).to_pylist()[0]
    assert [stored_row[name] for name in ("weights", "recorded", "verbatim")] == [None, None, None]
    weighted = msgspec.structs.replace(row.messages[1], weight=0.0, recorded=2)
    stored_row = to_table([Checked(msgspec.structs.replace(row, messages=(row.messages[0], weighted)))]).to_pylist()[0]
    assert (stored_row["weights"], stored_row["recorded"]) == ([None, 0.0], [0, 2])


def test_the_schema_is_the_same_for_any_rows() -> None:
    assert to_table([], ["a"]).schema == schema(("a",))
    assert tuple(schema(("a",)).names) == (*COLUMNS, "a")
    message = schema().field("messages").type.value_type
    assert [message.field(i).name for i in range(5)] == ["role", "name", "channel", "recipient", "content"]
    assert [message.field(i).nullable for i in range(5)] == [False, True, True, True, False]


def test_a_recorded_boolean_counts_as_derived() -> None:
    row = Conversation((Message("assistant", "a", "analysis", recorded=0),), template_kwargs={"enable_thinking": True})
    (again,) = readmit(to_table([Checked(row)]))
    assert again.template_kwargs == {}
    assert again.id == row.id


@pytest.mark.parametrize("value", [None, 0, "", [], {"b": 1, "a": None}, 123456789012345678901])
def test_annotations_keep_their_json(value: object) -> None:
    row = Conversation((Message("user", "hi", recorded=0),), meta={"kept": value})
    assert readmit(to_table([Checked(row)], ["kept", "other"]))[0].meta == {"kept": value}


@given(st.lists(rows, min_size=1, max_size=4))
@settings(max_examples=30)
def test_sizes_are_the_bytes_of_texts_and_template_arguments(conversations: list[Conversation]) -> None:
    table = to_table([Checked(row) for row in conversations])
    expected = [
        sum(len(message.text.encode()) for message in row.messages) + len(stored.encode())
        for row, stored in zip(conversations, table.column("chat_template_kwargs").to_pylist(), strict=True)
    ]
    assert text_sizes(pa.concat_tables([table, table])) == expected * 2
