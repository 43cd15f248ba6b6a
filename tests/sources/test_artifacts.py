"""The artifacts of a source: structured chats, `id, text`, and texts under the hash of their content."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
import xxhash

from chats import chat, numbered
from pinned_sources import BuiltSource, said
from turnmill.errors import StaleError
from turnmill.options import Model, Render
from turnmill.steps.manifest import read_artifact
from turnmill.verbs.render import Wording
from turnmill.verbs.source_steps import Chats, Texts

RENORMALISED = """
from turnmill.sources import Pin, PinnedSource

def again():
    files = {files!r}
    return PinnedSource(Pin({folder!r}, files), tokens=1e6, licence="cc0-1.0", dialect="turnmill")
"""


def with_tool(name: str, **properties) -> dict:
    """A record that calls a tool of its own."""
    tool = {"name": name, "parameters": {"type": "object", "properties": properties}}
    call = {"id": "c1", "function": {"name": name, "arguments": json.dumps(dict.fromkeys(properties, "x"))}}
    turns = [{"role": "user", "content": f"Use {name}."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    answers = [{"role": "tool", "tool_call_id": "c1", "content": "done"}, {"role": "assistant", "content": "Done."}]
    return {"messages": [*turns, *answers], "tools": [tool]}


def test_the_three_artifacts_say_what_they_are(build) -> None:
    built = build(*(chat(*turns) for turns in numbered(3)))
    chats = read_artifact(built.folder("conversations"), Chats)
    texts = read_artifact(built.folder("normalized"), Texts)
    assert (chats.result.rows, chats.result.read, texts.result.rows) == (3, 3, 3)
    assert [row.keys() for row in built.table("rendered")] == [{"id", "text"}] * 3
    assert [row.keys() for row in built.table("normalized")] == [{"id", "text", "source_id"}] * 3
    with pytest.raises(StaleError, match="whose result is no Texts"):
        read_artifact(built.folder("conversations"), Texts)


def test_texts_keep_the_ids_of_their_chats_and_store_no_bos(build, tmp_path) -> None:
    built = build(chat("  Ask\n", "say  "), chat("Other", "thing"))
    rendered = built.table("rendered")
    assert [row["id"] for row in rendered] == [row["id"] for row in built.table("conversations")]
    llama = BuiltSource(built.key, tmp_path / "cache", Wording(Model(template="llama3"), Render(), {}))
    assert not [row for row in llama.table("rendered") if "begin_of_text" in row["text"]]


def test_normalised_texts_are_named_by_their_content_and_each_is_there_once(build) -> None:
    """Two chats of other template arguments that the template does not show: two chats, one text."""
    built = build(chat("a", "b"), chat("a", "b", chat_template_kwargs={"shade": "dark"}), chat("  c\t\t\n", "d"))
    assert [len(built.table(stage)) for stage in ("conversations", "rendered", "normalized")] == [3, 3, 2]
    first, third = built.table("normalized")
    assert first["id"] == xxhash.xxh3_128_hexdigest(first["text"].encode())
    assert first["source_id"] == built.table("conversations")[0]["id"]
    assert [third["text"]] == [row["text"] for row in built.table("rendered")][2:]
    assert built.counters("normalized") == {"normalize/duplicates": 1, "normalize/unique": 2}


def test_another_template_makes_texts_anew_and_nothing_else(build, tmp_path) -> None:
    built = build(chat("a", "b"))
    other = BuiltSource(built.key, tmp_path / "cache", Wording(Model(template="llama3"), Render(), {}))
    assert [outcome.node.name for outcome in other.outcomes if outcome.state == "made"] == [
        "mine/rendered",
        "mine/normalized",
    ]
    assert other.folder("conversations") == built.folder("conversations")
    assert other.artifact("normalized").result.template != built.artifact("normalized").result.template


def test_the_schema_is_one_whatever_tools_rows_have(build) -> None:
    schema = _schema(build(chat("a", "b")))
    built = build(with_tool("f", a={"type": "string"}), with_tool("g", b={"type": "array", "items": {}}))
    assert _schema(built) == schema
    kept = [json.loads(row["chat_template_kwargs"])["tools"][0]["name"] for row in built.table("conversations")]
    assert kept == ["f", "g"]


def _schema(built: BuiltSource):
    artifact = built.artifact("conversations")
    return pq.read_schema(artifact.folder / artifact.result.files[0])


def test_a_call_that_comes_late_in_a_file_survives_to_the_text(build) -> None:
    """Eight plain rows, then one with a tool whose arguments no row before had."""
    late = with_tool("measure", width={"type": "number"}, unit={"type": "string"})
    built = build(*(chat(*turns) for turns in numbered(8)), late)
    assert said(built.table("conversations")[8])[1] == ("call functions.measure", '{"width": "x", "unit": "x"}')
    assert '{"width": "x", "unit": "x"}' in built.table("normalized")[8]["text"]


def test_chats_that_are_read_again_keep_their_ids_and_where_they_came_from(build, tmp_path) -> None:
    rows = [chat(*turns, id=f"r{n}", train_turns=[0]) for n, turns in enumerate(numbered(3))]
    first = build(*rows, with_tool("f", a={"type": "string"}))
    artifact = first.artifact("conversations")
    path = tmp_path / "again.py"
    path.write_text(RENORMALISED.format(files=artifact.result.files, folder=str(artifact.folder)))
    again = BuiltSource(f"{path}:again", tmp_path / "cache")
    kept = ("id", "source_id", "messages", "chat_template_kwargs", "weights", "source_train_turns")
    for before, after in zip(first.table("conversations"), again.table("conversations"), strict=True):
        assert [before[name] for name in kept] == [after[name] for name in kept]
    assert [row["id"] for row in first.table("normalized")] == [row["id"] for row in again.table("normalized")]
