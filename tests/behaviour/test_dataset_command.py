"""`turnmill dataset`: what a shelf holds, what is wrong with it, and making and removing datasets."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

ROW = '{"instruction": "a", "output": "b"}\n'


@pytest.fixture
def dataset(turnmill, tmp_path):
    """Runs `turnmill dataset` on a shelf."""
    return lambda *arguments: turnmill("dataset", *arguments, "--shelf", tmp_path / "shelf")


@pytest.fixture
def facts(dataset, write) -> Path:
    """A dataset of 150 rows, made as a user makes it; gives its data file."""
    assert dataset("new", "facts").code == 0
    return write("shelf/facts/facts.jsonl", ROW * 150)


def test_an_empty_shelf_says_how_to_begin(dataset):
    answer = dataset("list")
    assert (answer.code, answer.next_step.startswith("turnmill dataset new NAME")) == (0, True)


def test_what_new_makes_can_be_filled_in(dataset, facts):
    assert [found["name"] for found in dataset("list", "--json").json["datasets"]] == ["facts"]
    assert dataset("show", "facts", "--json").json["num_records"] == 150
    assert "facts.jsonl" in dataset("show", "facts").out


def test_list_names_datasets_and_problems(dataset, facts, write):
    write("shelf/bad/dataset.toml", "file =")
    answer = dataset("list")
    assert "facts" in answer.out
    assert "problem: bad: dataset.toml is not TOML" in answer.err
    assert answer.next_step.startswith("turnmill dataset validate bad --shelf ")
    assert dataset("list", "--json").json["problems"][0]["dir"] == "bad"


def test_preview_has_the_first_lines(dataset, facts):
    found = dataset("preview", "facts", "--json").json
    assert (found["name"], len(found["lines"]), found["num_records"], found["truncated"]) == ("facts", 100, 150, True)
    assert json.loads(found["lines"][0]) == {"instruction": "a", "output": "b"}
    assert dataset("preview", "facts", "--lines", "150", "--json").json["truncated"] is False
    assert dataset("preview", "facts", "--lines", "1001").code == 2
    assert "Did you mean 'facts'" in dataset("preview", "fact").err


def test_validate_says_every_fault(dataset, facts):
    assert dataset("validate", "facts").out == "150 rows: facts can be used\n"
    facts.write_text(f"{ROW}[]\n{ROW}{{")
    answer = dataset("validate", "facts")
    assert [line.partition(": ")[0] for line in answer.out.splitlines()] == ["facts.jsonl:2", "facts.jsonl:4"]
    assert (answer.code, "2 faults" in answer.err) == (3, True)
    found = dataset("validate", facts.parent, "--json").json
    assert (found["usable"], [fault["line"] for fault in found["faults"]]) == (False, [2, 4])


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ('file = "rows.jsonl"\nx = ?', "dataset.toml:2: dataset.toml is not TOML"),
        ("", "dataset.toml: dataset.toml names no data file"),
        ('file = "rows.jsonl"', "dataset.toml: the data file 'rows.jsonl' is not there"),
        ('file = "facts.jsonl"\nname = "a"', "dataset.toml: the name 'a' is that of the dataset in 'a', too"),
    ],
)
def test_validate_says_what_is_wrong_with_a_manifest(dataset, write, manifest, said):
    for name, text in (("a", 'file = "facts.jsonl"'), ("b", manifest)):
        write(f"shelf/{name}/dataset.toml", text)
        write(f"shelf/{name}/facts.jsonl", ROW)
    answer = dataset("validate", "b")
    assert (answer.code, answer.out.startswith(said)) == (3, True)


def test_validate_notes_keys_that_nobody_reads(dataset, facts):
    with facts.with_name("dataset.toml").open("a") as manifest:
        manifest.write('license = "cc0"\n')
    assert "note: nothing reads the key 'license'; did you mean 'licence'?" in dataset("validate", "facts").err


@pytest.mark.parametrize("target", ["nowhere", "."])
def test_validate_needs_a_dataset(dataset, tmp_path, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    assert dataset("validate", target).code == 2


@pytest.mark.parametrize("name", ["facts", "../facts", "a/b", ".a", ""])
def test_new_refuses_what_is_taken_or_no_name(dataset, facts, name, tmp_path):
    assert dataset("new", name).code == 2
    assert [path.name for path in (tmp_path / "shelf").iterdir()] == ["facts"]


def test_remove_asks_before_it_removes(dataset, facts):
    refused = dataset("remove", "facts")
    assert (refused.code, refused.next_step.endswith("--yes"), facts.exists()) == (2, True, True)
    assert dataset("remove", "facts", "--yes").code == 0
    assert list(facts.parents[1].iterdir()) == []


def test_remove_takes_a_problem_or_a_link_and_not_what_it_names(dataset, facts, tmp_path):
    (tmp_path / "shelf" / "out").symlink_to(tmp_path)
    assert dataset("remove", "out", "--yes").code == 0
    assert [path.name for path in facts.parents[1].iterdir()] == ["facts"]
    assert dataset("remove", "../shelf", "--yes").code == 2


def test_a_full_disk_leaves_no_directory_behind(dataset, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("turnmill.shelf.directory.write_whole", refuse)
    answer = dataset("new", "facts")
    assert (answer.code, "No space left" in answer.err) == (2, True)
    assert list((tmp_path / "shelf").iterdir()) == []


def test_add_puts_a_file_on_the_shelf_or_over_that_of_a_dataset(dataset, write):
    path = write("rows.jsonl", ROW * 2)
    assert dataset("add", path).out == "2 rows: rows is on the shelf\n"
    assert dataset("add", path, "--name", "other", "--json").json["num_records"] == 2
    write("rows.jsonl", ROW)
    dataset("add", path)
    assert [one["num_records"] for one in dataset("list", "--json").json["datasets"]] == [2, 1]


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("x\n", (), "rows.jsonl:1: invalid-json"),
        ("", (), "no record"),
        (ROW, ("--name", "a b"), "the name is 'a b'"),
        (ROW, ("--dialect", "nobody"), "unknown dialect 'nobody'"),
    ],
)
def test_add_refuses_and_leaves_nothing(dataset, write, content, arguments, said):
    answer = dataset("add", write("rows.jsonl", content), *arguments)
    assert answer.code == 2
    assert said in answer.out + answer.err
    assert dataset("list", "--json").json["datasets"] == []


def test_sync_says_what_changed(dataset, facts, tmp_path):
    database = tmp_path / "state.db"
    first, second = (dataset("sync", "--database", database) for _ in range(2))
    assert first.out.startswith("facts: new, ")
    assert (second.out, second.err) == ("", "1 datasets, 0 records changed\n")
    answer = dataset("sync", "--database", database, "--json").json
    assert answer == {"datasets": 1, "changes": []}
