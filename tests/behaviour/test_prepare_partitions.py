"""Dedup and split by partition: no byte hangs on how many there are, on what runs them, or on where a run stopped."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from chats import chat
from dedup_at_once import duplicates
from published import Published
from turnmill import dedup
from turnmill.config import Config
from turnmill.steps.store import Place, StepStore
from turnmill.verbs import filter as filtering
from turnmill.verbs import prepare
from turnmill.verbs.prepared import publish_prepared

SOURCES = ("zeta", "alpha", "mid")
WORDS = [f"word{number}" for number in range(300)]
ALL_WAYS = {"dedup": {"by": ["exact", "first-exchange", "near"]}, "split": {"fraction": 0.3, "near": True}}
BY_ROWS = {"dedup": {"by": ["exact", "first-exchange"]}, "split": {"rows": 25, "per_source": True}}
STAGES = ["pairs", "keys", "repeats", "near-repeats", "leaving", "lost", "joins", "groups", "held-out"]
Run = Callable[..., Published]


def texts(draw: random.Random, pool: list[tuple[str, str]]) -> list[str]:
    """A chat of the pool, or one like it: shouted, asked otherwise, answered otherwise, gone on with."""
    question, answer = draw.choice(pool)
    return draw.choice(
        [
            [question, answer],
            [question.upper(), answer],
            [f"{question} {draw.choice(WORDS)}", answer],
            [question, f"{answer} {draw.choice(WORDS)}"],
            [question, answer, draw.choice(WORDS), "Yes."],
            ["What is new?", " ".join(draw.choices(WORDS, k=30))],
        ]
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Three sources of two files each, the later name first: the order of rows is not that of places."""
    folder, draw = tmp_path_factory.mktemp("data"), random.Random(4)
    pool = [(" ".join(draw.choices(WORDS, k=12)), " ".join(draw.choices(WORDS, k=40))) for _ in range(90)]
    for name in (f"{source}-{part}.jsonl" for source in SOURCES for part in "ba"):
        rows = [chat(*texts(draw, pool)) for _ in range(60)]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def partitioned(data, tmp_path) -> Run:
    def call(name: str, partitions: int, options: dict, progress=None, cache=None, **more) -> Published:
        files = {source: [str(data / f"{source}-{part}.jsonl") for part in "ba"] for source in SOURCES}
        sources = [{"name": name, "data": paths} for name, paths in files.items()]
        given = {"model": {"name_or_path": "smollm2"}, "sources": sources, "workers": 1, **options, **more}
        plan = prepare.plan_of(Config.model_validate_json(json.dumps(given)))
        output = tmp_path / name
        made = prepare.run(plan, cache or prepare.cache_of(output, None), progress, partitions)
        publish_prepared(plan, made, output, 0.0)
        return Published(output)

    return call


@pytest.mark.parametrize("options", [ALL_WAYS, BY_ROWS], ids=["all-ways", "by-rows"])
def test_no_byte_hangs_on_the_number_of_partitions(partitioned, options):
    one, four, many = (partitioned(f"of-{count}", count, options) for count in (1, 4, 64))
    assert four.sha256 == one.sha256
    assert many.sha256 == one.sha256
    codes = {row["code"] for row in one.table("duplicates")}
    assert codes >= {"duplicate", "duplicate-first-exchange"}
    assert min(len(one.conversations(side)) for side in ("train", "eval")) > 20


@pytest.mark.slow
def test_worker_processes_give_the_same_bytes(partitioned):
    inline = partitioned("inline", 3, BY_ROWS, executor="inline")
    assert partitioned("local", 3, BY_ROWS, executor="local", workers=2).sha256 == inline.sha256


def test_partitions_find_what_a_look_at_all_rows_finds(partitioned, tmp_path):
    lost = partitioned("out", 16, BY_ROWS).table("duplicates")
    paths = (tmp_path / ".out.steps").glob(f"filter-*/shards/*/{filtering.INDEX}")
    rows = sorted((row for path in paths for row in pq.read_table(path).to_pylist()), key=lambda row: row["row"])
    entries = [
        dedup.Entry(
            row["id"],
            row["weights"],
            dedup.Place(SOURCES.index(row["source"]), row["source_file"], row["source_line"]),
            row["exchange"],
            row["row"],
        )
        for row in rows
        if row["kept"]
    ]
    expected = {
        loser.entry.row: (loser.code, loser.winner.row) for loser in duplicates(entries, BY_ROWS["dedup"]["by"])
    }
    assert {row["row"]: (row["code"], row["winner_row"]) for row in lost} == expected
    source_of = {row["row"]: row["source"] for row in rows}
    assert any(source_of[row["winner_row"]] != row["source"] for row in lost)


class Stopped(Exception):
    """The run ends here."""


def stop_in(stage: str) -> Callable[[str, int, int], None]:
    """Ends the run once half of a stage's tasks are done."""

    def progress(name: str, done: int, total: int) -> None:
        if name == stage and done >= (total + 1) // 2:
            raise Stopped

    return progress


def test_a_run_that_stopped_in_every_stage_gives_the_same_bytes(partitioned):
    whole = partitioned("whole", 4, ALL_WAYS)
    for stage in STAGES:
        with pytest.raises(Stopped):
            partitioned("stopped", 4, ALL_WAYS, stop_in(stage))
    assert partitioned("stopped", 4, ALL_WAYS).sha256 == whole.sha256


def test_a_number_of_partitions_that_changes_on_the_way_changes_nothing(partitioned):
    whole = partitioned("whole", 1, BY_ROWS)
    for partitions, stage in ((4, "repeats"), (7, "group-sizes")):
        with pytest.raises(Stopped):
            partitioned("stopped", partitions, BY_ROWS, stop_in(stage))
    assert partitioned("stopped", 2, BY_ROWS).sha256 == whole.sha256


def test_what_is_there_needs_no_stage(partitioned):
    partitioned("out", 1, BY_ROWS)
    seen: set[str] = set()
    partitioned("out", 8, BY_ROWS, lambda name, done, total: seen.add(name))
    assert seen.isdisjoint(STAGES)


def test_another_machine_goes_on_from_a_store(partitioned, tmp_path):
    whole = partitioned("whole", 1, BY_ROWS)
    one, two, three = (
        Place(tmp_path / name, StepStore(f"memory://{tmp_path.name}/steps", tmp_path / name)) for name in "abc"
    )
    for machine, stage in ((one, "repeats"), (two, "held-out")):
        with pytest.raises(Stopped):
            partitioned("out", 3, BY_ROWS, stop_in(stage), machine)
    assert partitioned("out", 3, BY_ROWS, cache=three).sha256 == whole.sha256
