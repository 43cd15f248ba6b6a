"""Held-out rows of `turnmill prepare`: whole prompt groups, stable when rows are added."""

from __future__ import annotations

import json

import pytest

from chats import numbered


def first_users(published, side: str) -> set[str]:
    return {row["messages"][0]["content"][0]["text"].casefold() for row in published.conversations(side)}


@pytest.fixture
def rows(chats):
    asked_twice = [[f"What is {n} plus {n}?".upper(), f"{2 * n}, of course."] for n in range(0, 300, 3)]
    return chats("rows.jsonl", *numbered(300), *asked_twice)


def test_a_fraction_of_the_prompt_groups_is_held_out_whole(prepare, rows):
    published = prepare(rows, "--split.fraction", "0.2")
    held_out, trained = first_users(published, "eval"), first_users(published, "train")
    assert not held_out & trained
    assert 30 <= len(held_out) <= 90
    counts = published.report["rows"]
    assert counts["eval"] == len(published.examples("eval")) == len(published.conversations("eval"))
    assert counts["accepted"] + counts["eval"] == 400


def test_no_row_changes_sides_when_rows_are_added(prepare, chats):
    few = prepare(chats("rows.jsonl", *numbered(200)), "--split.fraction", "0.2")
    many = prepare(chats("rows.jsonl", *numbered(400)), "--split.fraction", "0.2", output="more")
    assert first_users(few, "eval") <= first_users(many, "eval")
    assert first_users(few, "train") <= first_users(many, "train")


def test_a_number_of_rows_is_held_out_in_whole_groups(prepare, rows):
    published = prepare(rows, "--split.rows", "25")
    assert 25 <= published.report["rows"]["eval"] <= 26
    assert not first_users(published, "eval") & first_users(published, "train")


def test_a_column_may_name_the_group(prepare, chats):
    records = [
        {"messages": json.loads(json.dumps(turns)), "topic": f"t{number % 150}"}
        for number, (question, answer) in enumerate(numbered(300))
        for turns in [[{"role": "user", "content": question}, {"role": "assistant", "content": answer}]]
    ]
    flags = ["--split.fraction", "0.3", "--split.group_field", "topic", "--read.keep_columns", "[topic]"]
    published = prepare(chats("rows.jsonl", *records), *flags)
    topics = [{row["topic"] for row in published.conversations(side)} for side in ("train", "eval")]
    assert topics[1]
    assert not topics[0] & topics[1]


def test_a_group_that_is_over_a_hundredth_of_the_rows_trains(prepare, chats):
    rows = chats("rows.jsonl", *([["Same question", f"answer {n}"] for n in range(40)]), *numbered(60))
    published = prepare(rows, "--split.fraction", "0.99")
    assert "same question" in first_users(published, "train")


def test_without_a_split_there_is_no_eval_side(prepare, chats):
    published = prepare(chats("rows.jsonl", *numbered(20)))
    assert not (published.folder / "eval").exists()
    assert not (published.folder / "conversations" / "eval").exists()


def test_holding_everything_out_is_refused(turnmill, chats, tmp_path):
    rows = chats("rows.jsonl", *numbered(200))
    answer = turnmill("prepare", rows, "--model", "smollm2", "-o", tmp_path / "out", "--split.rows", 1000)
    assert answer.code == 3
    assert "no row became a training example" in answer.err
