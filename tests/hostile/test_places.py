"""Places that are no files, and files that do not stay as they are."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest

from chats import chat
from turnmill.errors import StaleError, TurnmillError, UsageError
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.files.resolve import resolve
from turnmill.options import Read

GOOD = json.dumps(chat("q", "a")).encode() + b"\n"


@pytest.fixture
def folder():
    """A folder with a short path, which a socket needs, that others may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        (Path(name) / "good.jsonl").write_bytes(GOOD)
        yield Path(name)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "is a pipe; expected a file"),
    "a socket": (make_socket, "is a socket; expected a file"),
    "a link to a device": (lambda path: path.symlink_to("/dev/zero"), "is a device; expected a file"),
    "a link to nothing": (lambda path: path.symlink_to("nothing"), "cannot read .*No such file"),
    "a link to itself": (lambda path: path.symlink_to(path), "cannot read .*Too many levels"),
}


@pytest.mark.parametrize("what", PLACES)
def test_what_is_no_file_in_a_folder_is_refused_and_never_waited_for(folder, what):
    make, message = PLACES[what]
    make(folder / "odd.jsonl")
    with pytest.raises(UsageError, match=f"odd.jsonl.*{message}|{message}.*odd.jsonl|{message}") as caught:
        plan("s", [str(folder)], Read())
    assert caught.value.next_step == f"ls -l {folder}/odd.jsonl"


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "/dev/full", "/dev/random"])
def test_a_device_is_refused(name):
    with pytest.raises(UsageError, match=f"{name} is a device; expected a file"):
        plan("s", [name], Read())


def test_a_named_socket_is_refused(folder):
    make_socket(folder / "s")
    with pytest.raises(UsageError, match="is a socket"):
        plan("s", [str(folder / "s")], Read())


def test_a_folder_named_like_a_file_is_a_folder(folder):
    (folder / "rows.jsonl").mkdir()
    shutil.copy(folder / "good.jsonl", folder / "rows.jsonl" / "a.jsonl")
    assert [name for _, name in resolve([str(folder)])] == ["good.jsonl", "rows.jsonl/a.jsonl"]
    assert [name for _, name in resolve([str(folder / "rows.jsonl")])] == ["a.jsonl"]


@pytest.mark.parametrize("pattern", ["", "/**/*.jsonl"])
@pytest.mark.parametrize("target", [".", ".."])
def test_links_that_lead_back_are_gone_through_once(folder, pattern, target):
    (folder / "a" / "b").mkdir(parents=True)
    shutil.copy(folder / "good.jsonl", folder / "a" / "b" / "c.jsonl")
    (folder / "a" / "b" / "back").symlink_to(target)
    (folder / "a" / "self").symlink_to(".")
    assert sorted(name for _, name in resolve([f"{folder}{pattern}"])) == ["a/b/c.jsonl", "good.jsonl"]


def test_a_link_out_of_the_folder_is_read_under_its_own_name(folder, tmp_path):
    shutil.move(folder / "good.jsonl", tmp_path / "elsewhere.bin")
    (folder / "link.jsonl").symlink_to(tmp_path / "elsewhere.bin")
    assert [file.name for file in plan("s", [str(folder)], Read()).files] == ["link.jsonl"]


def test_a_linked_folder_is_not_searched_unless_it_is_named(folder, tmp_path):
    (tmp_path / "data").symlink_to(folder)
    with pytest.raises(UsageError, match="linked folders are not searched"):
        resolve([str(tmp_path)])
    assert [name for _, name in resolve([str(tmp_path / "data")])] == ["good.jsonl"]


@contextmanager
def unprivileged():
    """Somebody whom permissions bind, as they do not bind root."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_may_not_be_read_is_named(folder, what):
    closed = folder / "inner" / "rows.jsonl"
    closed.parent.mkdir()
    shutil.copy(folder / "good.jsonl", closed)
    os.chmod(closed if what == "file" else closed.parent, 0)
    with unprivileged(), pytest.raises(UsageError, match=r"cannot read .*inner.*: Permission denied") as caught:
        plan("s", [str(folder)], Read())
    assert (caught.value.next_step or "").startswith("ls -l")
    os.chmod(closed.parent, 0o755)


def test_a_cache_that_may_not_be_written_is_named(folder, prepare_rows, turnmill, smollm2_directory):
    shutil.copytree(smollm2_directory, folder / "model")
    prepare_rows(GOOD)  # loads what only root may load
    for name in ("cache", "out"):
        (folder / name).mkdir()
    os.chmod(folder / "out", 0o777)
    output = ("--output", folder / "out" / "made", "--cache", folder / "cache", "--workers", "1")
    with unprivileged():
        answer = turnmill(
            "prepare", folder / "good.jsonl", "--model", folder / "model", "--template", "chatml", *output
        )
    assert (answer.code, "Traceback" in answer.err) == (2, False)
    assert f"cannot write {folder}/cache/" in answer.err
    assert "Permission denied" in answer.err
    assert not (folder / "out" / "made").exists()


def rewrite(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"q"', b'"x"'))


def rewrite_with_the_old_times(path: Path) -> None:
    status = path.stat()
    rewrite(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace(path: Path) -> None:
    rewrite(path.parent / shutil.copy2(path, path.parent / "other"))
    os.replace(path.parent / "other", path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "grown": lambda path: path.write_bytes(path.read_bytes() + GOOD),
    "shrunk": lambda path: os.truncate(path, path.stat().st_size - len(GOOD)),
    "emptied": lambda path: path.write_bytes(b""),
    "rewritten to the same size": rewrite,
    "rewritten with the old times": rewrite_with_the_old_times,
    "replaced by one of the same size": replace,
    "gone": Path.unlink,
    "a folder now": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("moment", ["before it is read", "while it is read"])
@pytest.mark.parametrize("what", CHANGES)
def test_a_file_that_changes_behind_the_plan_ends_the_run(tmp_path, what, moment):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD * 50)
    (shard,) = plan("s", [str(path)], Read()).shards
    reading = records(shard, Read())
    if moment == "while it is read":
        next(reading)
    CHANGES[what](path)
    with pytest.raises(TurnmillError) as caught:
        list(reading)
    assert isinstance(caught.value, UsageError if what == "gone" else StaleError)
    assert caught.value.next_step == f"ls -l {path}"


def test_a_file_that_is_only_touched_is_read(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(GOOD * 3)
    (shard,) = plan("s", [str(path)], Read()).shards
    os.utime(path, ns=(1, 1))
    assert len(list(records(shard, Read()))) == 3
