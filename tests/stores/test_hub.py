"""`hf://` against a small stand-in of the dataset hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from huggingface_hub import HfFileSystem, constants

from chats import chat, numbered
from hub_stand_in import PRIVATE, REPOSITORY, TOKEN
from stores_of_tests import NOBODY, found_at, lines_of
from turnmill.errors import UsageError
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.options import Read

DATASET = f"hf://datasets/{REPOSITORY}"
MAIN = "from turnmill.cli.app import main; main()"
FILES = {"data/a.jsonl": lines_of(40), "data/b/c.jsonl": lines_of(7), "README.md": b"x"}


@pytest.fixture
def commit(hub) -> str:
    return hub.commit(FILES)


@pytest.mark.parametrize(
    ("inside", "names"),
    [
        ("/data", ["a.jsonl", "b/c.jsonl"]),
        ("", ["data/a.jsonl", "data/b/c.jsonl"]),
        ("@main", ["data/a.jsonl", "data/b/c.jsonl"]),
        ("/data/*.jsonl", ["a.jsonl"]),
        ("@main/**/c.jsonl", ["data/b/c.jsonl"]),
        ("/data/b/c.jsonl", ["c.jsonl"]),
    ],
)
def test_files_folders_and_patterns_are_read(commit, inside, names):
    assert [name for name, _ in found_at(f"{DATASET}{inside}")] == names


@pytest.mark.parametrize("revision", ["", "@main", "@COMMIT"])
def test_every_file_is_read_at_the_commit_that_the_revision_stands_for(commit, revision):
    planned = plan("mine", [f"{DATASET}{revision.replace('COMMIT', commit)}/data/a.jsonl"], Read())
    assert [file.path for file in planned.files] == [f"{DATASET}@{commit}/data/a.jsonl"]


def test_a_commit_is_read_as_it_was_and_a_branch_as_it_is(hub, commit):
    before = found_at(f"{DATASET}@{commit}/data/a.jsonl")
    later = hub.commit({**FILES, "data/a.jsonl": lines_of(40, first=1)})
    now = found_at(f"{DATASET}/data/a.jsonl")
    assert found_at(f"{DATASET}@{commit}/data/a.jsonl") == before != now == found_at(f"{DATASET}@{later}/data/a.jsonl")


def test_a_branch_that_moves_between_planning_and_reading_changes_nothing(hub, commit):
    planned = plan("mine", [f"{DATASET}/data/a.jsonl"], Read())
    hub.commit({"data/a.jsonl": b"{}"})
    assert len(list(records(planned.shards[0], Read()))) == 40


REFUSED = [
    ("/none.jsonl", "no data file at "),
    ("@nowhere/data", "revision not found"),
    ("-s-cousin/data", "repository not found"),
]


@pytest.mark.parametrize(("inside", "what"), REFUSED)
def test_what_is_not_there_is_named(commit, inside, what):
    with pytest.raises(UsageError, match=what) as caught:
        plan("mine", [f"{DATASET}{inside}"], Read())
    assert caught.value.next_step == "hf auth whoami"


@pytest.mark.parametrize("token", ["", "hf_another-token-that-opens-nothing"])
def test_who_may_not_read_is_told_and_the_token_is_not_shown(commit, monkeypatch, token):
    monkeypatch.setenv("HF_TOKEN", token)
    monkeypatch.setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "")
    HfFileSystem.clear_instance_cache()
    with pytest.raises(UsageError, match="cannot open") as caught:
        plan("mine", [f"hf://datasets/{PRIVATE}/data"], Read())
    assert "hf_another" not in f"{caught.value.message} {caught.value.next_step}"


def test_a_hub_that_is_down_is_named(commit, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", NOBODY)
    HfFileSystem.clear_instance_cache()
    with pytest.raises(UsageError, match="cannot open"):
        plan("mine", [f"{DATASET}/data"], Read())


def test_a_private_dataset_is_prepared_by_workers_and_its_commit_is_recorded(hub, tmp_path):
    commit = hub.commit({"rows.jsonl": "".join(json.dumps(chat(*row)) + "\n" for row in numbered(30)).encode()})
    output, data = tmp_path / "out", f"hf://datasets/{PRIVATE}"
    command = [sys.executable, "-c", MAIN, "prepare", data, "--model", "smollm2", "--output", str(output)]
    environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_IMPLICIT_TOKEN": ""}
    done = subprocess.run([*command, "--workers", "2"], env=environment, capture_output=True, text=True)
    assert (done.returncode, TOKEN in done.stdout + done.stderr) == (0, False), done.stderr
    run = (output / "run.json").read_text()
    assert f"{data}@{commit}/rows.jsonl" in run
    assert not [path for path in output.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
