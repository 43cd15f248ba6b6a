import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from turnmill.errors import StaleError, UsageError
from turnmill.files import disk
from turnmill.files.inventory import FileEntry, inventory, is_published, read_manifest, sha256_of, verify
from turnmill.files.publish import claim, publish

HOLDER = """
import sys
from pathlib import Path
from turnmill.files.publish import claim
with claim(Path(sys.argv[1])):
    print("mine", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def step_file(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "part.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"n": [1, 2, 3]}), path)
    return path


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "somewhere" / "OUT"


def test_out_holds_what_its_manifest_lists(step_file: Path, output: Path) -> None:
    manifest = publish(
        {"train/part.parquet": step_file, "report.json": b"{}"},
        output,
        about={"recipe": [1]},
        unlisted={"run.json": b"1"},
    )
    assert manifest == read_manifest(output) == verify(output)
    assert manifest["recipe"] == [1]
    assert [(f["path"], f["rows"]) for f in manifest["files"]] == [("report.json", None), ("train/part.parquet", 3)]
    assert manifest["files"][1]["sha256"] == sha256_of(step_file)
    assert (output / "train/part.parquet").samefile(step_file)
    assert (output / "run.json").read_bytes() == b"1"
    assert os.listdir(output.parent) == ["OUT", ".OUT.lock"] or sorted(os.listdir(output.parent)) == [
        ".OUT.lock",
        "OUT",
    ]


def test_an_earlier_output_is_replaced_whole(step_file: Path, output: Path) -> None:
    publish({"old/part.parquet": step_file}, output)
    publish({"new.json": b"2"}, output)
    assert sorted(path.name for path in output.rglob("*")) == ["manifest.json", "new.json"]
    assert step_file.exists()


def test_an_empty_folder_is_taken(output: Path) -> None:
    output.mkdir(parents=True)
    publish({"a.json": b"1"}, output)
    assert verify(output)


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (lambda out: (out.mkdir(parents=True), (out / "thesis.tex").write_text("x")), "turnmill did not write"),
        (lambda out: (out.mkdir(parents=True), (out / "manifest.json").write_text('{"files": []}')), "did not write"),
        (lambda out: (out.parent.mkdir(), out.write_text("x")), "is a file"),
    ],
)
def test_what_turnmill_did_not_write_is_never_replaced(output: Path, spoil, what: str) -> None:
    spoil(output)
    before = sorted(output.parent.rglob("*"))
    with pytest.raises(UsageError, match=what):
        publish({"a.json": b"1"}, output)
    assert sorted(output.parent.rglob("*")) == sorted([*before, disk.beside(output, "lock")])


def test_a_second_run_is_told_who_has_the_place(output: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(output)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "mine\n"
    with pytest.raises(UsageError, match=f"written by process {holder.pid}"), claim(output, wait_s=0.1):
        pytest.fail("two runs have one place")
    holder.kill()
    holder.communicate()
    with claim(output, wait_s=5):
        publish({"a.json": b"1"}, output)
    assert verify(output)


def test_a_swap_that_was_interrupted_is_mended(output: Path) -> None:
    publish({"a.json": b"1"}, output)
    output.rename(disk.beside(output, "old"))
    with claim(output):
        assert verify(output)
    assert not disk.beside(output, "old").exists()


def test_a_failure_leaves_the_earlier_output_and_no_draft(output: Path, tmp_path: Path) -> None:
    publish({"a.json": b"1"}, output)
    with pytest.raises(FileNotFoundError):
        publish({"b.json": b"2", "c.parquet": tmp_path / "nowhere"}, output)
    assert sorted(os.listdir(output.parent)) == [".OUT.lock", "OUT"]
    assert verify(output)["files"][0]["path"] == "a.json"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EBUSY])
def test_a_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path, code: int) -> None:
    with (
        pytest.raises(UsageError, match=f"cannot write {tmp_path}.*{os.strerror(code)}") as refused,
        disk.writing(tmp_path / "a"),
    ):
        raise OSError(code, "x")
    assert refused.value.next_step == f"df -h {tmp_path}"


def test_a_place_below_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot write"):
        publish({"a.json": b"1"}, tmp_path / "file" / "OUT")


def test_files_of_another_device_are_copied(step_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "other device")

    monkeypatch.setattr(os, "link", refuse)
    disk.link_or_copy(step_file, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == step_file.read_bytes()


@pytest.mark.parametrize(
    ("spoil", "whole", "what"),
    [
        (lambda out: (out / "a.json").unlink(), False, r"a.json \(missing\)"),
        (lambda out: (out / "a.json").write_text("longer"), False, "6 bytes, expected 1"),
        (lambda out: (out / "a.json").write_text("2"), True, "other content"),
    ],
)
def test_a_folder_that_changed_is_stale(output: Path, spoil, whole: bool, what: str) -> None:
    publish({"a.json": b"1"}, output)
    spoil(output)
    with pytest.raises(StaleError, match=what):
        verify(output, whole=whole)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b'"\xff"', b"[]", b"[" * 100_000, b'{"made_by": {"turnmill": "1"}, "files": [{"path": 1}]}'],
)
def test_a_damaged_manifest_is_stale(output: Path, content: bytes) -> None:
    output.mkdir(parents=True)
    (output / "manifest.json").write_bytes(content)
    with pytest.raises(StaleError, match=r"manifest\.json"):
        verify(output)


def test_a_folder_in_the_manifest_s_place_is_no_manifest(output: Path) -> None:
    (output / "manifest.json").mkdir(parents=True)
    assert not is_published(output)
    with pytest.raises(UsageError, match="no prepared folder"):
        verify(output)


def test_a_folder_without_manifest_is_no_prepared_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no prepared folder"):
        verify(tmp_path)


def test_the_inventory_counts_rows_of_parquet_and_arrow(step_file: Path) -> None:
    table = pa.table({"n": [1, 2]})
    with pa.OSFile(str(step_file.parent / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    (step_file.parent / "b.json").write_text(json.dumps({}))
    assert [(entry.path, entry.rows) for entry in inventory(step_file.parent)] == [
        ("a.arrow", 2),
        ("b.json", None),
        ("part.parquet", 3),
    ]
    assert isinstance(inventory(step_file.parent)[0], FileEntry)
