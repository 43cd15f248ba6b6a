"""The example shelf: its generator writes the same 500 sound rows each time, and git leaves them out."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "shelf" / "datasets_training"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    """A copy of the shelf without generated rows."""
    place = tmp_path_factory.mktemp("example") / "datasets_training"
    shutil.copytree(EXAMPLE, place, ignore=shutil.ignore_patterns("*.jsonl"))
    return place


def generated(shelf: Path) -> bytes:
    subprocess.run([sys.executable, shelf / "world-facts" / "generate.py"], check=True)
    return (shelf / "world-facts" / "world_facts_v1.jsonl").read_bytes()


def test_the_generator_makes_the_dataset_usable(shelf, turnmill):
    missing = turnmill("dataset", "list", "--shelf", shelf, "--json").json
    assert (missing["datasets"], "'generate.py' generates it" in missing["problems"][0]["error"]) == ([], True)
    generated(shelf)
    [found] = turnmill("dataset", "list", "--shelf", shelf, "--json").json["datasets"]
    assert (found["name"], found["num_records"], found["licence"]) == ("world-facts", 500, "Apache-2.0")


def test_it_writes_the_same_bytes_again_and_nothing_else(shelf):
    before = generated(shelf)
    assert generated(shelf) == before
    names = {path.name for path in (shelf / "world-facts").iterdir()}
    assert names == {".gitignore", "dataset.toml", "facts.toml", "generate.py", "world_facts_v1.jsonl"}
    assert (shelf / "world-facts" / ".gitignore").read_text() == "/world_facts_v1.jsonl\n"


def test_no_question_stands_twice_and_every_answer_is_a_sentence(shelf):
    rows = [json.loads(line) for line in generated(shelf).splitlines()]
    assert len({row["instruction"] for row in rows}) == 500
    assert all(row["output"].endswith(".") and row["output"][0].isupper() for row in rows if "L'" not in row["output"])
    assert all(
        "the the " not in row["instruction"] + row["output"] and not row["output"].endswith("..") for row in rows
    )
    assert {
        "instruction": "What is the capital of Peru?",
        "input": "",
        "output": "The capital of Peru is Lima.",
    } in rows
