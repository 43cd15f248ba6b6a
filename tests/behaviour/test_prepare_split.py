"""Held-out rows of `turnmill prepare`: whole prompt groups, stable when rows are added."""

from __future__ import annotations

import json

import pytest

from chats import numbered
from planted import exact_pairs, planted


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


@pytest.mark.parametrize("wanted", [200, 1000])
def test_holding_everything_out_is_refused(turnmill, chats, tmp_path, wanted):
    rows = chats("rows.jsonl", *numbered(200))
    answer = turnmill("prepare", rows, "--model", "smollm2", "-o", tmp_path / "out", "--split.rows", wanted)
    assert answer.code == 2
    assert f"split.rows is {wanted:,}, but 200 rows are left to split; expected fewer, in whole groups" in answer.err
    assert answer.next_step.endswith("--split.fraction 0.05")
    assert not (tmp_path / "out").exists()


def test_a_group_that_is_too_large_is_named(turnmill, chats, tmp_path):
    rows = chats("rows.jsonl", *numbered(60), *([["Same question", f"answer {n}"] for n in range(40)]))
    answer = turnmill("prepare", rows, "--model", "smollm2", "-o", tmp_path / "out", "--split.fraction", "0.5")
    assert "40 of 100 rows are one group, that of rows.jsonl:61; a group of over 1% of the rows always" in answer.err


def test_a_fraction_that_holds_nothing_out_says_so(turnmill, chats, tmp_path):
    flags = ["--model", "smollm2", "-o", tmp_path / "out", "--split.fraction", "0.0001"]
    answer = turnmill("prepare", chats("rows.jsonl", *numbered(20)), *flags)
    assert answer.code == 0
    assert "split.fraction 0.0001 holds out none of 20 rows" in answer.err


def test_each_source_may_hold_out_its_own(prepare, chats):
    rows = [chats("a.jsonl", *numbered(100)), chats("b.jsonl", *numbered(60, 100))]
    published = prepare(*rows, "--split.rows", "7", "--split.per_source", "true")
    held_out = [row["source"] for row in published.conversations("eval")]
    assert (held_out.count("a"), held_out.count("b")) == (7, 7)


STEM = "Write a short poem about a lathe that turns a piece of brass into a ring for a friend who lives far away in"


@pytest.fixture
def variants(chats):
    """Forty questions, each asked in three ways that end otherwise."""
    about = [f"lathe{n} x{n} y{n} z{n}" for n in range(40)]
    endings = ("today", "now please", "at once")
    asked = [[f"{STEM.replace('lathe', what)} {end}", "A poem."] for what in about for end in endings]
    return chats("rows.jsonl", *asked, *numbered(200))


def towns(published, side: str) -> set[str]:
    texts = [row["messages"][0]["content"][0]["text"] for row in published.conversations(side)]
    return {text.split("lathe")[1].split()[0] for text in texts if "lathe" in text}


def test_near_duplicates_stand_on_one_side(prepare, variants):
    alone = prepare(variants, "--split.fraction", "0.3")
    assert towns(alone, "eval") & towns(alone, "train")
    near = ["--split.near", "true", "--dedup.near.threshold", "0.7"]
    together = prepare(variants, "--split.fraction", "0.3", *near, output="near")
    assert len(towns(together, "eval")) > 5
    assert not towns(together, "eval") & towns(together, "train")


def test_no_pair_of_near_duplicates_stands_on_two_sides(prepare, chats):
    texts = planted(150, edited=150, seed=11)
    rows = chats("rows.jsonl", *([text, "Noted."] for text in texts))
    published = prepare(rows, "--split.fraction", "0.3", "--split.near", "true", "--dedup.near.threshold", "0.7")
    held_out = {row["row"] for row in published.conversations("eval")}
    pairs = exact_pairs([f"{text} Noted." for text in texts], 0.7)
    assert 40 < len(held_out) < 200
    assert sum(first in held_out for first, _ in pairs) > 10
    assert [pair for pair in pairs if len(held_out & set(pair)) == 1] == []
    assert published.report["rows"]["duplicates"] == 0


@pytest.mark.parametrize("flags", [["--seed", "7"], ["--split.fraction", "0.9"], ["--workers", "2"]])
def test_prompts_that_differ_in_case_and_space_stand_on_one_side(prepare, chats, flags):
    same = [["What is 2+2?", "4"], ["what is 2+2? ", "4"], ["What is 2+2?", "Four."]]
    published = prepare(chats("rows.jsonl", *same, *numbered(300)), "--split.fraction", "0.5", *flags)
    asked = [
        [row["messages"][0]["content"][0]["text"].casefold().strip() for row in published.conversations(side)]
        for side in ("train", "eval")
    ]
    assert sorted(texts.count("what is 2+2?") for texts in asked) == [0, 3]
    assert not set(asked[0]) & set(asked[1])


@pytest.mark.parametrize(
    ("before", "after", "gone"),
    [
        (["--split.fraction", "0.3"], [], "eval"),
        (["--split.rows", "5"], ["--split.rows", "9"], None),
        (["--split.fraction", "0.3", "--pack.materialise", "true"], ["--pack.materialise", "false"], "eval/packed"),
    ],
)
def test_another_split_leaves_nothing_of_the_old_one(prepare, chats, before, after, gone):
    rows = chats("rows.jsonl", *numbered(100))
    prepare(rows, *before)
    again = prepare(rows, *after)
    fresh = prepare(rows, *after, output="fresh")
    assert again.sha256 == fresh.sha256
    if gone:
        assert not (again.folder / gone).exists()
