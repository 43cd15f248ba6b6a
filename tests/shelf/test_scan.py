from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from turnmill.errors import UsageError
from turnmill.shelf import scan
from turnmill.shelf.scan import Shelf

ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'
NOBODY = 65534
OTHER = b'{"instruction": "x", "input": "", "output": "y"}\n'


def names(shelf: Path) -> list[str]:
    return [dataset.manifest.name for dataset in Shelf(shelf).listing().datasets]


def problems(shelf: Path) -> dict[str, str]:
    return {problem.dir: problem.error for problem in Shelf(shelf).listing().problems}


def test_a_shelf_that_is_not_there_has_no_datasets(tmp_path):
    assert Shelf(tmp_path / "nowhere").listing().as_json() == {"datasets": [], "problems": []}


def test_a_shelf_that_is_a_file_is_an_error(write):
    with pytest.raises(UsageError, match="Not a directory"):
        Shelf(write("shelf", "")).listing()


def test_datasets_come_by_name_and_other_names_are_skipped(shelf, put):
    put("a", 'file = "rows.jsonl"\nname = "z"')
    for name in ("c", "b", "Case", "case", ".hidden"):
        put(name)
    (shelf / "no-manifest").mkdir()
    (shelf / "a-file").write_text("")
    assert names(shelf) == ["Case", "b", "c", "case", "z"]
    assert problems(shelf) == {}


def test_a_listing_says_what_a_dataset_is(shelf, put):
    put("facts", 'file = "rows.jsonl"\nversion = "2"\ngenerator = "g.py"\nlicence = "cc0"', ROW + b"\n" + OTHER)
    [found] = Shelf(shelf).listing().as_json()["datasets"]
    assert found == {
        "name": "facts", "description": "", "format": "jsonl", "file": "rows.jsonl", "version": "2",
        "generator": "g.py", "dir": "facts", "filename": "facts.jsonl", "size_bytes": 99, "num_records": 2,
        "sha256": found["sha256"], "licence": "cc0",
    }  # fmt: skip


def test_the_second_of_a_name_is_a_problem(shelf, put):
    put("a", 'file = "rows.jsonl"\nname = "b"')
    put("b")
    assert names(shelf) == ["b"]
    assert problems(shelf) == {"b": "the name 'b' is that of the dataset in 'a', too"}


def test_an_unusable_dataset_takes_no_name(shelf, put):
    put("a", 'file = "rows.jsonl"\nname = "b"', rows=None)
    put("b")
    assert names(shelf) == ["b"]


def test_a_missing_file_names_the_generator(shelf, put):
    put("facts", 'file = "rows.jsonl"\ngenerator = "make.py"', rows=None)
    assert problems(shelf) == {"facts": "the data file 'rows.jsonl' is not there; 'make.py' generates it"}


def test_odd_files_are_problems_and_never_waited_for(shelf, put):
    os.mkfifo(put("pipe", rows=None) / "rows.jsonl")
    (put("out", rows=None) / "rows.jsonl").symlink_to("/etc/passwd")
    (put("dangling", rows=None) / "rows.jsonl").symlink_to("nothing")
    (put("folder", rows=None) / "rows.jsonl").mkdir()
    (shelf / "toml").mkdir()
    os.mkfifo(shelf / "toml" / "dataset.toml")
    (shelf / "link").symlink_to("/etc")
    (shelf / "loop").symlink_to("loop")
    found = problems(shelf)
    said = {"pipe": "a pipe", "out": "leads out", "dangling": "not there", "folder": "a directory", "toml": "a pipe"}
    assert all(part in found.pop(name) for name, part in said.items())
    assert "leads out of the shelf" in found.pop("link")
    assert found.keys() == {"loop"}


def test_a_name_that_is_not_utf8_is_a_problem_that_can_be_printed(shelf):
    folder = os.path.join(os.fsencode(shelf), b"caf\xe9")
    os.mkdir(folder)
    with open(os.path.join(folder, b"dataset.toml"), "w") as file:
        file.write('file = "rows.jsonl"')
    assert list(problems(shelf)) == ["caf\\xe9"]


@pytest.fixture
def unprivileged():
    """A shelf's place, seen by a user who may not read everything."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        is_root = os.geteuid() == 0
        yield Path(place), lambda: os.seteuid(NOBODY) if is_root else None
        if is_root:
            os.seteuid(0)


def test_files_without_permission_are_problems(unprivileged):
    place, become_nobody = unprivileged
    for name, closed in (("manifest", "dataset.toml"), ("rows", "rows.jsonl"), ("folder", ".")):
        (place / name).mkdir()
        (place / name / "dataset.toml").write_text('file = "rows.jsonl"')
        (place / name / "rows.jsonl").write_bytes(ROW)
        (place / name / closed).chmod(0)
    become_nobody()
    found = problems(place)
    assert sorted(found) == ["folder", "manifest", "rows"]
    assert all("Permission denied" in error for error in found.values())


@pytest.fixture
def reads(monkeypatch):
    """Directories whose data file was read to its end."""
    seen: list[str] = []
    real = scan.examine
    monkeypatch.setattr(scan, "examine", lambda folder, *rest: seen.append(folder.name) or real(folder, *rest))
    return seen


@pytest.fixture
def settled(monkeypatch):
    """As if every file had been left alone for long."""
    monkeypatch.setattr(scan, "SETTLED_NANOSECONDS", -(10**18))


def test_what_did_not_change_is_not_read_again(shelf, put, reads, settled):
    put("good")
    put("bad", rows=b"{")
    kept = Shelf(shelf)
    assert kept.listing() == kept.listing()
    assert sorted(reads) == ["bad", "good"]


def test_a_file_that_was_just_written_is_read_again(shelf, put, reads, monkeypatch):
    put()
    monkeypatch.setattr(scan, "TICK_NANOSECONDS", 10**15)
    monkeypatch.setattr(scan, "SETTLED_NANOSECONDS", 10**15)
    kept = Shelf(shelf)
    kept.listing()
    kept.listing()
    assert reads == ["facts"]
    monkeypatch.setattr(scan, "sha256_of", lambda *_: "another")
    kept.listing()
    assert reads == ["facts", "facts"]


@pytest.mark.parametrize(("age", "times"), [(0, 1), (50_000_000, 1), (150_000_000, 0)])
def test_a_file_is_hashed_again_until_its_clock_has_ticked(shelf, put, monkeypatch, age, times):
    put()
    hashed: list[str] = []
    real = scan.sha256_of
    monkeypatch.setattr(scan, "sha256_of", lambda *given: hashed.append("") or real(*given))
    changed = max((shelf / "facts" / name).stat().st_ctime_ns for name in ("dataset.toml", "rows.jsonl"))
    monkeypatch.setattr(scan.time, "time_ns", lambda: changed + age)
    kept = Shelf(shelf)
    assert kept.listing() == kept.listing()
    assert len(hashed) == times


def test_a_change_of_the_same_size_and_time_is_seen(shelf, put, settled):
    rows = put() / "rows.jsonl"
    kept = Shelf(shelf)
    before = kept.listing().datasets[0].content.sha256
    times = rows.stat()
    changed_at = times.st_ctime_ns
    while rows.stat().st_ctime_ns == changed_at:  # the file system's clock ticks every few milliseconds
        rows.write_bytes(OTHER)
        os.utime(rows, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert kept.listing().datasets[0].content.sha256 != before


def test_what_was_mended_replaced_or_removed_is_seen(shelf, put, settled):
    folder = put(rows=b"{")
    kept = Shelf(shelf)
    assert not kept.listing().datasets
    (folder / "new").write_bytes(ROW)
    (folder / "new").replace(folder / "rows.jsonl")
    assert kept.listing().dataset("facts").content.num_records == 1
    (folder / "m").write_text('file = "rows.jsonl"\nname = "other"')
    (folder / "m").replace(folder / "dataset.toml")
    assert [dataset.manifest.name for dataset in kept.listing().datasets] == ["other"]
    (folder / "rows.jsonl").unlink()
    assert "not there" in kept.listing().problems[0].error
    (folder / "dataset.toml").unlink()
    assert kept.listing().as_json() == {"datasets": [], "problems": []}


def test_a_directory_that_goes_during_the_scan_is_no_dataset(shelf, put, monkeypatch):
    put()
    monkeypatch.setattr(Shelf, "_names", lambda _: {"facts": False, "gone": False})
    assert Shelf(shelf).listing().problems == ()
