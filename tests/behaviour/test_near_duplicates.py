"""Near-duplicates of `turnmill prepare`: what leaves, for what, and what is made anew."""

from __future__ import annotations

import pytest

from chats import chat, numbered
from planted import exact_pairs, planted

NEAR = ["--dedup.by", "[exact, near]"]
LONG = "The lathe turns the work while the tool stands still, and the mill turns the tool while the work is moved."


@pytest.fixture
def texts() -> list[str]:
    return planted(120, edited=120, seed=8)


def as_chats(texts: list[str]) -> list[list[str]]:
    return [[f"{number}?", text] for number, text in enumerate(texts)]


def test_each_row_that_leaves_is_near_one_that_stays(prepare, chats, texts):
    published = prepare(chats("rows.jsonl", *as_chats(texts)), *NEAR)
    lost = published.table("duplicates")
    stay = {row["row"] for row in published.conversations()}
    assert len(lost) > 30
    assert {row["code"] for row in lost} == {"near-duplicate"}
    assert all(row["winner_row"] < row["row"] and row["winner_row"] in stay for row in lost)
    assert all(0.8 <= row["similarity"] < 1 for row in lost)
    assert published.report["rows"] | {"duplicates": len(lost), "accepted": len(stay)} == published.report["rows"]


def test_nothing_that_stays_is_near_another(prepare, chats, texts):
    published = prepare(chats("rows.jsonl", *as_chats(texts)), *NEAR, "--dedup.near.threshold", "0.7")
    left = [f"{row['row']}? {texts[row['row']]}" for row in published.conversations()]
    assert exact_pairs(left, 0.7) == {}


def test_a_loser_says_what_it_is_near_to(prepare, chats):
    rows = [[f"Explain: {LONG}", "As you say."], [f"explain {LONG} Please", "As you say"], ["Other", "thing"]]
    (row,) = prepare(chats("rows.jsonl", *rows), *NEAR).table("duplicates")
    assert row["message"] == "is 0.81 similar to row 0 (rows.jsonl:1)"
    assert row["similarity"] == pytest.approx(21 / 26)
    assert row["winner_row"] == 0


def test_a_long_system_prompt_makes_no_near_duplicates(prepare, chats):
    rows = [
        {"messages": [{"role": "system", "content": LONG * 5}, *chat(*turns)["messages"]]} for turns in numbered(20)
    ]
    assert prepare(chats("rows.jsonl", *rows), *NEAR).report["rows"]["duplicates"] == 0


def test_the_first_source_wins(prepare, chats):
    rows = [chats("b.jsonl", [LONG, "Yes."]), chats("a.jsonl", [LONG.upper(), "Yes"], ["q", "a"])]
    (row,) = prepare(*rows, *NEAR).table("duplicates")
    assert (row["source"], row["winner_row"], row["similarity"]) == ("a", 0, 1.0)


def test_all_rows_alike_leave_but_one(prepare, chats):
    rows = chats("rows.jsonl", *[[LONG, "Yes." + " " * number] for number in range(300)])
    published = prepare(rows, *NEAR)
    assert published.report["rows"]["accepted"] == 1
    assert published.report["codes"] == {"near-duplicate": 299}


def test_a_passage_that_many_rows_share_is_called_out(turnmill, chats, tmp_path):
    passage = " ".join(f"p{number}" for number in range(200))
    rows = chats("rows.jsonl", *[[f"{passage} What of {n}?", f"{n}."] for n in range(10)], *numbered(20))
    flags = ["--model", "smollm2", "--output", tmp_path / "out"]
    answer = turnmill("prepare", rows, *flags, *NEAR)
    assert "warning: source 'rows': 9 of 30 rows left as near-duplicates; where they share a long passage" in answer.err
    few = turnmill("prepare", rows, *flags, *NEAR, "--dedup.near.threshold", "0.99")
    assert "near-duplicates" not in few.err


@pytest.mark.parametrize("flags", [["--workers", "2"], ["--limit", "1000"]])
def test_out_is_the_same_however_it_is_made(prepare, chats, texts, flags):
    rows = chats("rows.jsonl", *as_chats(texts))
    assert prepare(rows, *NEAR, "--workers", "1").sha256 == prepare(rows, *NEAR, *flags, output="other").sha256


@pytest.mark.parametrize(
    ("flags", "made"),
    [
        (["--dedup.near.threshold", "0.9"], {"signatures", "pairs", "dedup", "split", "tokenize", "pack"}),
        (["--dedup.near.ngram", "2"], {"signatures", "pairs", "dedup", "split", "tokenize", "pack"}),
        (["--split.near", "true"], {"split", "tokenize", "pack"}),
        (["--dedup.by", "[exact]"], {"dedup", "split", "tokenize", "pack"}),
        (["--dedup.by", "[exact]", "--dedup.near.threshold", "0.9"], {"dedup", "split", "tokenize", "pack"}),
    ],
)
def test_only_what_a_change_concerns_is_made_anew(prepare, chats, tmp_path, flags, made):
    rows = chats("rows.jsonl", *numbered(30))
    steps = tmp_path / ".out.steps"
    prepare(rows, *NEAR)
    before = set(steps.iterdir())
    prepare(rows, *NEAR, *flags)
    assert {path.name.partition("-")[0] for path in set(steps.iterdir()) - before} == made


def test_a_threshold_that_nobody_asks_about_changes_nothing(prepare, chats, tmp_path):
    rows = chats("rows.jsonl", *numbered(30))
    prepare(rows)
    before = set((tmp_path / ".out.steps").iterdir())
    prepare(rows, "--dedup.near.threshold", "0.9", "--decontaminate.ngram", "8")
    assert set((tmp_path / ".out.steps").iterdir()) == before


def test_the_census_of_raw_data_says_what_it_leaves_out(turnmill, chats):
    rows = chats("rows.jsonl", *numbered(3))
    answer = turnmill("census", rows, "--template", "chatml", *NEAR, "--decontaminate.against", rows)
    assert "not counted here, and left to prepare: near-duplicates" in answer.err
    assert answer.code == 0


@pytest.mark.slow
def test_a_hundred_thousand_rows(prepare, chats):
    texts = planted(80_000, edited=20_000, seed=9)
    published = prepare(chats("rows.jsonl", *as_chats(texts)), *NEAR, "--pack.materialise", "false")
    expected = {second for _, second in exact_pairs([f"{n}? {text}" for n, text in enumerate(texts)], 0.8)}
    lost = {row["row"] for row in published.table("duplicates")}
    assert len(lost & expected) >= 0.95 * len(expected)
    assert len(lost - expected) <= 0.01 * len(lost)
