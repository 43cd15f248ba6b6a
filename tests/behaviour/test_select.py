"""Scoring and selecting in `turnmill prepare`, with the scorer that needs no model."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from chats import chat, numbered
from published import Published
from turnmill.cli.app import run
from turnmill.verbs import score, select, select_rows

SCORED = [
    "--score.on",
    "true",
    "--score.scorer",
    "ngram",
    "--select.max_perplexity",
    "0",
    "--select.min_perplexity",
    "0",
]


def words(count: int, seed: int) -> str:
    draw = random.Random(seed)
    return " ".join("".join(draw.choices("abcdefgh", k=draw.randint(1, 6))) for _ in range(count))


@pytest.fixture
def rows(chats):
    """60 rows: twenty that repeat themselves, forty that do not."""
    easy = [chat(f"Say it {n}", f"so {n} " * 40, topic="easy") for n in range(20)]
    hard = [chat(f"Say more {n}", words(40, n), topic="hard") for n in range(40)]
    return chats("rows.jsonl", *easy, *hard)


def stages(published: Published) -> Counter:
    return Counter((row["class"], row["stage"], row["code"]) for row in published.table("quarantine"))


def order(published: Published, side: str = "train") -> list[int]:
    """Source lines in the order in which they are learned."""
    lines = [example["source_line"] for example in published.examples(side)]
    return [lines[number] for pack in published.plan(side) for number in pack]


def selection(published: Published) -> list[dict]:
    import pyarrow.parquet as pq

    return pq.read_table(published.folder / "selection.parquet").to_pylist()


def test_a_budget_chooses_and_every_other_row_leaves_by_one_door(prepare, rows):
    published = prepare(rows, *SCORED, "--select.strategy", "balanced", "--select.rows", "30")
    counts = published.report["rows"]
    assert (counts["accepted"], counts["unselected"], counts["read"]) == (30, 30, 60)
    assert stages(published) == {("unselected", "select", "not-selected"): 30}
    kept = {row["source_line"] for row in published.conversations()}
    left = {row["source_line"] for row in published.table("quarantine")}
    assert kept | left == set(range(1, 61))
    assert {example["source_line"] for example in published.examples()} == kept
    assert sorted(order(published)) == sorted(kept)


def test_the_report_counts_what_was_selected_alone(prepare, rows):
    published = prepare(rows, *SCORED, "--select.strategy", "hard-focus", "--select.rows", "10")
    examples = published.examples()
    assert published.report["tokens"]["total"] == sum(len(example["input_ids"]) for example in examples)
    facts = published.report["selection"]
    assert (facts["pool"]["rows"], facts["selected"]["rows"], facts["control"]["rows"]) == (60, 10, 10)
    assert facts["selected"]["perplexity"]["median"] > facts["pool"]["perplexity"]["median"]
    assert facts["selected"]["familiarity"]["unfamiliar"] == 10
    assert published.manifest["selection"] == facts


def test_a_curriculum_is_learned_from_the_familiar_to_the_unfamiliar(prepare, rows):
    published = prepare(rows, *SCORED, "--select.strategy", "curriculum", "--select.rows", "40")
    perplexity = {row["number"] + 1: row["perplexity"] for row in selection(published)}
    learned = [perplexity[line] for line in order(published)]
    assert learned == sorted(learned)
    assert len(learned) == 40
    assert learned != [perplexity[line] for line in sorted(order(published))]


def test_a_control_of_the_same_size_is_a_side_of_its_own(prepare, rows, capsys):
    published = prepare(rows, *SCORED, "--select.strategy", "flow", "--select.rows", "20")
    assert len(published.examples("control")) == len(published.conversations("control")) == 20
    assert order(published, "control") != order(published)
    assert published.packed("control")
    assert run(["compare", str(published.folder)]) == 0
    assert "#control" in capsys.readouterr().out


def test_the_same_run_gives_the_same_bytes_and_scores_nothing_again(prepare, rows, monkeypatch, tmp_path):
    flags = [*SCORED, "--select.strategy", "optimal", "--select.rows", "30"]
    steps = ["--cache", tmp_path / "steps"]
    first = prepare(rows, *flags, *steps)
    monkeypatch.setattr(score, "_scored", None)  # whoever scores now fails
    again = prepare(rows, *flags, *steps, output="again")
    other = prepare(rows, *flags, *steps, "--select.strategy", "random", "--seed", "3", output="other")
    assert again.sha256 == first.sha256
    assert len(other.examples()) == 30


def test_new_rows_alone_are_scored(prepare, chats, monkeypatch, tmp_path):
    steps = ["--cache", tmp_path / "steps", "--workers", "1"]
    prepare(chats("rows.jsonl", *numbered(30)), *SCORED, *steps)
    asked = []
    plain = score._to_score
    monkeypatch.setattr(score, "_to_score", lambda row, full: asked.append(row["row_id"]) or plain(row, full=full))
    prepare(chats("rows.jsonl", *numbered(33)), *SCORED, *steps, output="more")
    assert len(asked) == 3


def test_outliers_leave_on_both_sides(prepare, rows):
    flags = [*SCORED, "--select.max_perplexity", "300", "--split.fraction", "0.3"]
    published = prepare(rows, *flags)
    held_out = {row["topic"] if "topic" in row else row["source_line"] for row in published.conversations("eval")}
    assert held_out
    assert all(line <= 20 for line in held_out)
    assert published.report["codes"] == {"perplexity-too-high": 40}
    counts = published.report["rows"]
    assert counts["accepted"] + counts["eval"] == 20


def test_a_budget_needs_no_scores(prepare, rows):
    published = prepare(rows, "--select.rows", "25")
    assert len(published.examples()) == 25
    assert not (published.folder / "scores").exists()
    assert {row["familiarity"] for row in selection(published)} == {-1}


def test_a_budget_in_trained_tokens(prepare, rows):
    published = prepare(rows, "--select.tokens", "1000")
    assert 800 < published.report["trained_tokens"]["total"] <= 1000


def test_quotas_by_a_kept_column(prepare, rows):
    flags = ["--select.rows", "20", "--select.group_field", "topic", "--keep-columns", "topic"]
    published = prepare(rows, *flags, "--select.quotas", "{easy: 1, hard: 3}")
    assert Counter(row["topic"] for row in published.conversations()) == {'"easy"': 5, '"hard"': 15}
    groups = published.report["selection"]["selected"]["groups"]
    assert {name: group["rows"] for name, group in groups.items()} == {"hard": 15, "easy": 5}


def test_several_sources_are_one_pool(prepare, chats):
    data = [chats("a.jsonl", *numbered(40)), chats("b.jsonl", *numbered(40, start=100))]
    published = prepare(*data, *SCORED, "--select.strategy", "optimal", "--select.rows", "40")
    facts = published.report["selection"]
    assert set(facts["selected"]["groups"]) == {"a", "b"}
    assert published.report["per_source"]["a"]["rows"]["accepted"] == facts["selected"]["groups"]["a"]["rows"]


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--select.strategy", "optimall"], 2, "Did you mean 'optimal'"),
        (["--select.rows", "5", "--select.tokens", "5"], 2, "expected one budget"),
        (["--select.rows", "5", "--select.quotas", "{x: 1}"], 2, "unknown group of select.quotas"),
        (["--select.rows", "5", "--select.group_field", "topic"], 2, "a column that read.keep_columns names"),
        (["--score.on", "true", "--score.scorer", "gpt"], 2, "unknown scorer"),
        ([*SCORED, "--select.min_perplexity", "1e9"], 3, "no row is left to select from"),
    ],
)
def test_a_selection_that_cannot_be_made_publishes_nothing(rows, tmp_path, capsys, flags, code, said):
    out = tmp_path / "out"
    assert run(["prepare", str(rows), "--model", "smollm2", "--output", str(out), "--workers", "1", *flags]) == code
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_a_control_is_asked_for_where_there_is_none(prepare, rows, capsys):
    published = prepare(rows, "--select.rows", "5")
    assert run(["compare", str(published.folder)]) == 2
    assert "drawn beside any strategy but `random`" in capsys.readouterr().err


def test_every_example_has_its_scores(prepare, rows):
    published = prepare(rows, *SCORED, "--select.perplexity_of", "full")
    scores = published.table("scores")
    assert [row["row_id"] for row in scores] == [example["row_id"] for example in published.examples()]
    assert all(np.isclose(sum(row["turn_nll"]), row["sum_nll"]) for row in scores)
    assert all(row["full_nll"] > row["sum_nll"] for row in scores)


def test_versions_are_numbers():
    assert (score.VERSION, select.VERSION, select_rows.VERSION) == (1, 2, 1)
