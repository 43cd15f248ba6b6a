"""Weights of sources in `turnmill prepare`, and `turnmill mix`."""

from __future__ import annotations

from collections import Counter

import pytest

from chats import numbered
from turnmill.files.prepared import PreparedData


@pytest.fixture
def sources(chats):
    return [chats("small.jsonl", *numbered(20)), chats("large.jsonl", *numbered(100, start=500))]


EQUAL = ["--sources.small.weight", "1", "--sources.large.weight", "1"]


def drawn(folder, epoch: int) -> Counter:
    prepared = PreparedData(folder)
    rows = [prepared.examples().row(number) for pack in prepared.plan("train", epoch) for number in pack]
    return Counter(row["source"] for row in rows)


def test_weights_make_an_epoch(prepare, sources):
    published = prepare(*sources, *EQUAL, "--mix.epochs", "2")
    assert sorted(path.name for path in (published.folder / "train/plans").iterdir()) == [
        "epoch-0000.arrow", "epoch-0001.arrow",
    ]  # fmt: skip
    assert [drawn(published.folder, epoch) for epoch in range(4)] == [{"small": 60, "large": 60}] * 4
    assert sum(len(row["seq_lengths"]) for row in published.packed()) == 120


def test_epochs_that_are_not_stored_are_those_that_would_have_been(prepare, sources):
    stored = prepare(*sources, *EQUAL, "--mix.epochs", "3", output="stored")
    made = prepare(*sources, *EQUAL, output="made")
    assert [PreparedData(stored.folder).plan("train", epoch) for epoch in range(3)] == [
        PreparedData(made.folder).plan("train", epoch) for epoch in range(3)
    ]


def test_without_weights_every_example_comes_once(prepare, sources):
    published = prepare(*sources, "--max-tokens", "64")
    prepared = PreparedData(published.folder)
    assert published.manifest["epochs"]["mix"] == {}
    plans = [prepared.plan("train", epoch) for epoch in range(2)]
    assert plans[0] != plans[1]
    assert all(sorted(number for pack in plan for number in pack) == list(range(120)) for plan in plans)


def test_text_beside_chats_replays_in_its_share(prepare, sources, write):
    text = write("books.jsonl", "".join(f'{{"text": "Chapter {number} of the book."}}\n' for number in range(40)))
    weights = ["--sources.books.weight", "0.1", "--sources.large.weight", "0.9"]
    published = prepare(sources[1], text, *weights)
    assert drawn(published.folder, 0) == {"large": 126, "books": 14}


def test_mix_says_what_an_epoch_has(prepare, turnmill, sources):
    published = prepare(*sources, *EQUAL)
    found = turnmill("mix", published.folder, "--json").json
    assert found["examples"] == 120
    assert [(one["source"], one["passes"], one["says"]) for one in found["sources"]] == [
        ("small", 3.0, "upsampled"), ("large", 0.6, "subsampled"),
    ]  # fmt: skip
    before = turnmill("mix", *sources, *EQUAL, "--plan", "--json").json
    assert [one["drawn"] for one in before["sources"]] == [60, 60]
    assert "upsampled" in turnmill("mix", published.folder).out


def test_a_source_gone_through_often_or_never_is_named(turnmill, sources, prepare):
    answer = turnmill("mix", *sources, "--sources.small.weight", "99", "--sources.large.weight", "0")
    assert "'large' has 100 examples and gives none" in answer.err
    assert "'small' is gone through 6.0 times an epoch" in answer.err


def test_weights_that_sum_to_zero_are_refused(turnmill, sources, tmp_path):
    flags = ["--sources.small.weight", "0", "--sources.large.weight", "0", "--model", "smollm2"]
    answer = turnmill("prepare", *sources, *flags, "--output", tmp_path / "out")
    assert answer.code == 2
    assert "sum to 0" in answer.err
    assert not (tmp_path / "out").exists()


def test_what_is_held_out_is_seen_once(prepare, sources):
    published = prepare(*sources, *EQUAL, "--split.fraction", "0.3")
    held_out = [number for pack in published.plan("eval") for number in pack]
    assert sorted(held_out) == list(range(len(published.examples("eval"))))
