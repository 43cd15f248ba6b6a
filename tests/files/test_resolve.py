import io
import os
import sys
import threading
from pathlib import Path

import fsspec
import pytest

from turnmill.errors import UsageError
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.files.resolve import resolve
from turnmill.options import Read

FILES = (
    "b.jsonl",
    "a/2.json",
    "a/1.ndjson.zst",
    "a.parquet",
    "notes.md",
    ".hidden.jsonl",
    ".git/c.jsonl",
    "z.JSONL.GZ",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text("{}\n")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (["data"], ["a/1.ndjson.zst", "a/2.json", "a.parquet", "b.jsonl", "z.JSONL.GZ"]),
        (["data/b.jsonl"], ["b.jsonl"]),
        (["data/notes.md"], ["notes.md"]),
        (["data/a"], ["1.ndjson.zst", "2.json"]),
        (["data/*.jsonl"], ["b.jsonl"]),
        (["data/**/*.json*"], ["a/2.json", "b.jsonl"]),
        (["data/b.jsonl", "data/a/2.json"], ["b.jsonl", "a/2.json"]),
        (["data/b.jsonl", "data/a"], ["b.jsonl", "a/1.ndjson.zst", "a/2.json"]),
        (["data/a/../b.jsonl"], ["b.jsonl"]),
    ],
)
def test_names_are_relative_to_the_source_s_root(folder: Path, monkeypatch: pytest.MonkeyPatch, data, names) -> None:
    monkeypatch.chdir(folder.parent)
    found = resolve(data)
    assert [name for _, name in found] == names
    assert all(os.path.isfile(path) for path, _ in found)
    assert [name for _, name in resolve([os.path.abspath(item) for item in data])] == names


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ([], "no data named"),
        (["nowhere.jsonl"], "no such file or directory: nowhere.jsonl"),
        (["data/*.csv"], r"no file matches data/\*\.csv"),
        (["data/.git"], None),
        (["empty"], "no data file in empty; expected .*jsonl"),
        (["data/b.jsonl", "data/b.jsonl"], "b.jsonl is named 2 times"),
        (["data", "data/b.jsonl"], "b.jsonl is named 2 times"),
        (["-", "-"], "- is named 2 times"),
        (["nosuch://bucket/x.jsonl"], "cannot open nosuch"),
        (["memory://nowhere/x.jsonl"], "no data file at memory"),
    ],
)
def test_what_is_not_there_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, data, what: str | None) -> None:
    monkeypatch.chdir(folder.parent)
    (folder.parent / "empty").mkdir()
    if what is None:
        assert resolve(data)
        return
    with pytest.raises(UsageError, match=what):
        resolve(data)


def test_a_name_with_brackets_is_a_file_before_it_is_a_pattern(folder: Path) -> None:
    (folder / "[1].jsonl").write_text("{}")
    assert resolve([str(folder / "[1].jsonl")]) == [(str(folder / "[1].jsonl"), "[1].jsonl")]


def test_an_unreadable_file_is_an_error_that_names_it(folder: Path) -> None:
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    with pytest.raises(UsageError, match=r"cannot read .*loop\.jsonl"):
        plan("mine", [str(folder)], Read())


def test_standard_input_is_spooled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 1}\n{"b": 2}\n')))
    planned = plan("mine", ["-"], Read(), shard_bytes=1)
    found = [record for shard in planned.shards for record in records(shard, Read())]
    assert [(record.source_file, record.value) for record in found] == [("stdin", {"a": 1}), ("stdin", {"b": 2})]


def test_a_pipe_is_spooled(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows")
    writer = threading.Thread(target=(tmp_path / "rows").write_bytes, args=[b'{"a": 1}'])
    writer.start()
    ((path, name),) = resolve([str(tmp_path / "rows")])
    writer.join()
    assert (Path(path).read_bytes(), name) == (b'{"a": 1}', "rows")


def test_no_two_files_have_one_name(write) -> None:
    fsspec.filesystem("memory").pipe({f"/{bucket}/x.jsonl": b"{}" for bucket in ("one", "two")})
    data = ["memory://one/x.jsonl", str(write("x.jsonl", "{}")), "memory://two/x.jsonl"]
    assert [name for _, name in resolve(data)] == ["x.jsonl", "x.jsonl (2)", "x.jsonl (3)"]


@pytest.mark.parametrize(
    ("data", "names"),
    [
        ("memory://bucket/rows", ["a.jsonl", "b/c.jsonl"]),
        ("memory://bucket/rows/*.jsonl", ["a.jsonl"]),
        ("memory://bucket/rows/b/c.jsonl", ["c.jsonl"]),
    ],
)
def test_urls_are_read_through_fsspec(data: str, names: list[str]) -> None:
    system = fsspec.filesystem("memory")
    system.pipe(
        {
            "/bucket/rows/a.jsonl": b'{"n": 1}\n{"n": 2}',
            "/bucket/rows/b/c.jsonl": b'{"n": 3}',
            "/bucket/rows/d.md": b"x",
        }
    )
    planned = plan("mine", [data], Read(), shard_bytes=1)
    assert [file.name for file in planned.files] == names
    found = [record.source_file for shard in planned.shards for record in records(shard, Read())]
    assert sorted(set(found)) == names
