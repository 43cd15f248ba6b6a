"""`turnmill steps` and `turnmill sources`, on a small source of a file of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

SOURCE = '''
"""Sums."""
from turnmill.errors import Filtered
from turnmill.sources import Pin, PinnedSource


def sums():
    """Small sums and their answers."""
    return PinnedSource(Pin({data!r}, ("*.jsonl",)), tokens=2e6, licence="cc0-1.0", convert=chat_of)


def chat_of(record):
    if "ask" not in record:
        raise Filtered("nothing is asked")
    turns = [("user", record["ask"]), ("assistant", record["say"])]
    return {{"id": record["key"], "messages": [{{"role": role, "content": text}} for role, text in turns]}}


def weightless():
    return PinnedSource(Pin({data!r}), tokens=0, licence="cc0-1.0")


def branch():
    return PinnedSource(Pin("hf://datasets/org/name@main"), tokens=1, licence="cc0-1.0")


def unhashed():
    return PinnedSource(Pin("https://host/rows.jsonl"), tokens=1, licence="cc0-1.0")


def nothing():
    return None
'''
STAGES = ["download", "check", "filter", "dedup", "conversations", "rendered", "normalized"]


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [{"key": f"k{n}", "ask": f"{n % 40} + 1?", "say": f"{n % 40 + 1}."} for n in range(60)]
    rows += [{"key": "none"}, {"key": "broken", "ask": "1 + 1?", "say": ""}]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def source(tmp_path, data) -> str:
    path = tmp_path / "mine.py"
    path.write_text(SOURCE.format(data=str(data)))
    return f"{path}:sums"


@pytest.fixture
def steps(turnmill, tmp_path):
    def call(*arguments, verb="steps"):
        return turnmill(verb, *arguments, "--cache", tmp_path / "cache")

    return call


def names(done) -> list[str]:
    return [line.split()[0] for line in done.out.splitlines()]


def test_the_steps_of_a_source_are_listed_in_order(steps, source):
    found = steps("list", source, "--json").json
    assert [one["name"] for one in found] == [f"sums/{stage}" for stage in STAGES]
    assert {one["built"] for one in found} == {False}


def test_a_run_makes_them_and_a_second_one_nothing(steps, source):
    assert [line.split()[1] for line in steps("run", source).out.splitlines()] == ["made"] * 7
    assert steps("run", source).out.split() == ["sums/normalized", "built"]
    assert {one["built"] for one in steps("list", source, "--json").json} == {True}


def test_a_dry_run_says_what_would_be_made(steps, source, tmp_path):
    done = steps("run", f"{source}/check", "--dry-run")
    assert [" ".join(line.split()[:4]) for line in done.out.splitlines()] == [
        "sums/download would be made", "sums/check would be made",
    ]  # fmt: skip
    assert not (tmp_path / "cache").exists()


def test_the_record_of_a_step_is_shown(steps, source):
    steps("run", source)
    found = steps("show", f"{source}/conversations", "--json").json
    assert (found["name"], found["result"]["rows"], found["result"]["read"]) == ("conversations", 40, 60)
    assert all(one["folder"] for one in found["inputs"])
    assert found["made_by"]["turnmill"]


def test_the_graph_is_drawn_for_a_page(steps, source):
    drawn = steps("graph", source).out
    assert drawn.startswith("flowchart LR\n")
    assert drawn.count("-->") == 9


def test_a_change_of_the_source_is_seen_by_its_hash(steps, source, data):
    steps("run", source)
    (data / "a.jsonl").write_text((data / "a.jsonl").read_text().replace("39 + 1", "99 + 1"))
    assert [line.split()[1] for line in steps("run", source).out.splitlines()] == ["made"] * 7


def test_a_source_gives_chats_texts_and_normalised_texts(steps, source, tmp_path):
    made = steps("run", source, verb="sources").out
    assert [line.split()[:2] for line in made.splitlines()[-6:-2]] == [
        ["artifact", "rows"], ["conversations", "40"], ["rendered", "40"], ["normalized", "40"],
    ]  # fmt: skip
    (chats,) = tmp_path.glob("cache/conversations-*/shards/*/conversations.parquet")
    (texts,) = tmp_path.glob("cache/normalize-*/shards/*/texts.parquet")
    kept, said = (pq.read_table(path).to_pylist() for path in (chats, texts))
    assert [row["source_id"] for row in kept[:2]] == ["k0", "k1"]
    assert [row["source_id"] for row in said] == [row["id"] for row in kept]


def test_a_source_is_held_against_what_was_published(steps, source):
    steps("run", source, verb="sources")
    found = steps("verify", source, "--rows", "1", "--json", verb="sources").json
    assert found["stages"] == {
        "read": 62, "rejected": 1, "filtered at reading": 1, "checked": 60, "stalled": 0, "filtered": 0,
        "duplicate": 20, "chats": 40, "not rendered": 0, "rendered": 40, "repeated texts": 0, "texts": 40,
    }  # fmt: skip
    assert (found["codes"], found["lost"]) == ({"source-filtered": 1, "blank-text": 1}, 0)
    stays, leaves = found["rows"]
    assert (json.loads(stays["original"])["ask"], stays["turns"][0]) == ("0 + 1?", ["user", "0 + 1?"])
    assert leaves["why"].startswith("source-filtered")


def test_a_part_of_a_source_is_taken(steps, source):
    found = steps("run", source, "--limit", "5", "--json", verb="sources").json
    assert found["conversations"]["result"] == {
        "files": ["shards/00000/conversations.parquet"], "rows": 5, "read": 5,
    }  # fmt: skip


def test_the_line_for_a_mix_can_be_trained_on(steps, source, turnmill, tmp_path):
    line = steps("run", source, verb="sources").out.splitlines()[-1]
    (tmp_path / "run.yaml").write_text(line.removeprefix("in a config: "))
    done = turnmill("prepare", tmp_path / "run.yaml", "--model", "smollm2", "--output", tmp_path / "out")
    assert done.code == 0, done.err
    assert "40 examples" in done.out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("weightless", "its weight is 0 tokens; expected a number above 0"),
        ("branch", "is not pinned; expected a commit of 40 digits"),
        ("unhashed", "is not pinned; expected `sha256` of each of its files"),
        ("nothing", "gives None; expected a Node"),
        ("missing", "unknown name"),
    ],
)
def test_a_source_that_is_not_one_is_refused(steps, source, name, said):
    done = steps("run", source.replace(":sums", f":{name}"))
    assert done.code == 2
    assert said in done.err


def test_an_unknown_stage_names_the_known_ones(steps, source):
    done = steps("run", f"{source}/rendred")
    assert (done.code, "Did you mean 'rendered'" in done.err) == (2, True)


def test_a_source_that_loses_too_much_keeps_what_was_fetched(steps, source, data):
    (data / "a.jsonl").write_text("".join(json.dumps({"key": "x", "ask": "", "say": ""}) + "\n" for _ in range(30)))
    done = steps("run", source)
    assert done.code == 3
    assert [line.split()[1] for line in done.out.splitlines()] == ["made"]
    assert "sums/texts" not in done.err
    assert done.err.count("not run: sums/check failed") == 5
    assert f"turnmill sources verify {source}" in done.next_step


def test_every_source_is_listed_with_its_weight(turnmill):
    found = turnmill("sources", "list", "--json").json
    assert all(one["tokens"] > 0 and one["licence"] for one in found["sources"])
