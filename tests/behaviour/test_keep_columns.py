"""Columns that nobody declared: kept by name or all of them, into OUT's rows and converted records."""

from __future__ import annotations

import json

import pytest

from chats import chat

ROWS = [
    chat("q0", "a0", topic="tea", source="web", score=1),
    chat("q1", "a1", topic=None, nested={"b": [1.0, 1]}, id="r1"),
    *(chat(f"q{n}", f"a{n}") for n in range(2, 150)),
    chat("q150", "a150", late="x", train_turns=[0]),
]


@pytest.fixture
def records(chats):
    return chats("rows.jsonl", *ROWS)


def columns_of(published) -> dict[str, dict[int, object]]:
    """Annotation column → row → its value, of rows that have one."""
    rows = published.conversations()
    names = [name for name in rows[0] if name in ("topic", "score", "nested", "late", "source_train_turns")]
    return {name: {row["row"]: json.loads(row[name]) for row in rows if row[name] is not None} for name in names}


def test_named_columns_reach_the_published_rows(prepare, records):
    out = prepare(records, "--keep-columns", "topic, nested")
    assert columns_of(out) == {
        "topic": {0: "tea", 1: None},
        "nested": {1: {"b": [1.0, 1]}},
        "source_train_turns": {150: [0]},
    }
    assert out.manifest["counts"]


def test_all_keeps_every_column_that_nobody_takes_however_late_it_comes(turnmill, prepare, records, tmp_path):
    out = prepare(records, "--keep-columns", "all")
    assert columns_of(out) == {
        "late": {150: "x"},
        "nested": {1: {"b": [1.0, 1]}},
        "score": {0: 1},
        "topic": {0: "tea", 1: None},
        "source_train_turns": {150: [0]},
    }
    assert {row["source"] for row in out.conversations()} == {"rows"}
    again = turnmill(
        "prepare", records, "--model", "smollm2", "--output", tmp_path / "dry", "--keep-columns", "all", "--dry-run"
    )
    assert "kept columns: late, nested, score, topic" in again.err


def test_a_column_named_as_ours_is_counted_and_not_kept(turnmill, records):
    assert "noted: 1 read/undeclared-column/source" in turnmill("check", records, "--keep-columns", "all").out


def test_kept_columns_come_back_from_a_prepared_folder(prepare, records):
    first = prepare(records, "--keep-columns", "all")
    again = prepare(first.folder, "--keep-columns", "all", output="again")
    assert columns_of(again) == columns_of(first)


@pytest.mark.parametrize(("kept", "found"), [("score", {"score"}), ("all", {"score", "topic"})])
def test_convert_writes_kept_columns(turnmill, records, tmp_path, kept, found):
    output = tmp_path / "out.jsonl"
    assert turnmill("convert", records, "--to", "sharegpt", "--output", output, "--keep-columns", kept).code == 0
    first = json.loads(output.read_text().splitlines()[0])
    assert first.keys() == {"conversations", *found}


def test_kept_columns_of_raw_texts_and_chats_stand_in_one_table(prepare, rows, records):
    texts = rows({"text": "A text.", "late": "y"}, name="texts.jsonl")
    assert columns_of(prepare(texts, records, "--keep-columns", "all"))["late"] == {0: "y", 151: "x"}


def test_a_group_may_be_named_by_a_column_that_all_keeps(turnmill, records, tmp_path):
    call = ["prepare", records, "--model", "smollm2", "--output", tmp_path / "out", "--keep-columns", "all"]
    assert turnmill(*call, "--split.rows", "3", "--split.group_field", "topic").code == 0
    answer = turnmill(*call, "--split.rows", "3", "--split.group_field", "topics")
    assert (answer.code, "expected a column that read.keep_columns names" in answer.err) == (2, True)


@pytest.mark.parametrize(("typed", "said"), [("all,topic", "got all beside names"), ("source", "got 'source'")])
def test_what_cannot_be_kept_is_refused(turnmill, records, typed, said):
    answer = turnmill("check", records, "--keep-columns", typed)
    assert (answer.code, said in answer.err) == (2, True)
