from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from turnmill.errors import UsageError
from turnmill.shelf.database import Database, DatabaseUnavailable
from turnmill.shelf.records import Records
from turnmill.shelf.scan import Dataset, Shelf
from turnmill.shelf.upload import Incoming, UploadRefused, added, publish, wanted_of

ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'
CHAT = b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'


@pytest.fixture
def upload(shelf: Path) -> Callable[..., tuple[Dataset, bool]]:
    """Receives and publishes rows; gives the dataset, and whether it is new."""

    def call(filename: str = "facts.jsonl", rows: bytes = ROW, records: Records | None = None, **fields: str):
        with Incoming(shelf, 10_000) as incoming:
            incoming.write(rows)
            return publish(incoming, wanted_of(filename, **fields), Shelf(shelf), records)

    return call


def seen(shelf: Path) -> list[str]:
    """The files of a shelf, but for locks."""
    return sorted(
        str(path.relative_to(shelf)) for path in shelf.rglob("*") if path.is_file() and path.suffix != ".lock"
    )


def test_a_file_becomes_a_dataset(shelf: Path, upload) -> None:
    dataset, is_new = upload()
    assert is_new
    assert Shelf(shelf).listing().datasets == (dataset,)
    assert seen(shelf) == ["facts/dataset.toml", "facts/facts.jsonl"]
    assert (shelf / "facts/dataset.toml").read_text() == 'name = "facts"\nfile = "facts.jsonl"\nformat = "jsonl"\n'


def test_a_file_replaces_that_of_a_dataset_and_leaves_its_manifest(shelf: Path, put, upload) -> None:
    said = 'file = "facts.jsonl"\ndescription = "mine"'
    put("facts", said)
    upload(rows=ROW * 2)
    dataset, is_new = upload(rows=ROW * 3)
    assert (is_new, dataset.content.num_records, dataset.manifest.description) == (False, 3, "mine")
    assert (shelf / "facts/dataset.toml").read_text() == said


@pytest.mark.parametrize(
    ("filename", "fields", "rows"),
    [
        ("chats.jsonl", {"dialect": "openai"}, CHAT),
        ("chats.jsonl", {"dialect": "auto"}, CHAT),
        ("chats.json", {"format": "json"}, b"[" + CHAT + b"]"),
    ],
)
def test_other_dialects_and_formats_are_said_in_the_manifest(shelf: Path, upload, filename, fields, rows) -> None:
    upload(filename, rows, **fields)
    (dataset,) = Shelf(shelf).listing().datasets
    assert dataset.content.num_records == 1
    assert {"format": dataset.manifest.format, "dialect": dataset.manifest.dialect}.items() >= fields.items()


@pytest.mark.parametrize(
    "filename",
    ["", ".jsonl", "facts", "facts.json", "../facts.jsonl", "a/b.jsonl", "/etc/a.jsonl", ".facts.jsonl", "a..b.jsonl",
     "a\\b.jsonl", "a b.jsonl", "é.jsonl", "a\n.jsonl", "a\x00.jsonl", "x" * 123 + ".jsonl", "facts.jsonl/", "..jsonl"],
)  # fmt: skip
def test_hostile_names_are_refused(filename: str) -> None:
    with pytest.raises(UploadRefused) as caught:
        wanted_of(filename)
    assert caught.value.code == "name-not-valid"


@pytest.mark.parametrize("fields", [{"format": "csv"}, {"dialect": "no-such"}, {"dialect": 'auto"\nfile = "/etc/x'}])
def test_no_such_format_or_dialect(fields: dict[str, str]) -> None:
    with pytest.raises(UploadRefused, match=r"format|dialect") as caught:
        wanted_of("facts.jsonl", **fields)
    assert caught.value.code == "file-not-valid"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (b"", "no record"),
        (b"\n \n", "no record"),
        (ROW + b"\xff\n", "facts.jsonl:2: invalid-utf8"),
        (b'{"instruction": "a"}', "facts.jsonl:1: the row has no 'output'"),
        (b"[1]", "facts.jsonl:1"),
        (b'{"instruction": 1, "output": "b"}', "'instruction' is 1"),
    ],
)
def test_files_that_are_not_valid_leave_nothing(shelf: Path, upload, rows: bytes, said: str) -> None:
    with pytest.raises(UploadRefused, match=said) as caught:
        upload(rows=rows)
    assert caught.value.code == "file-not-valid"
    assert seen(shelf) == []
    assert not (shelf / "facts").exists()


def test_so_many_faults_are_told(upload) -> None:
    with pytest.raises(UploadRefused, match=r"30 faults: facts\.jsonl:1") as caught:
        upload(rows=b"x\n" * 30)
    assert [fault.line for fault in caught.value.faults] == [*range(1, 21)]
    assert caught.value.count == 30


def test_a_file_is_refused_as_soon_as_it_is_too_large(shelf: Path) -> None:
    with Incoming(shelf, 100) as incoming:
        incoming.write(b"x" * 100)
        with pytest.raises(UploadRefused, match="more than 100 bytes") as caught:
            incoming.write(b"x")
    assert caught.value.code == "too-large"
    assert seen(shelf) == []


@pytest.mark.parametrize(
    ("manifest", "code"),
    [
        ('file = "rows.jsonl"', "file-named-otherwise"),
        ('file = "facts.jsonl"\nname = "other"', "name-taken"),
        ('file = "facts.jsonl"\ndialect = "sharegpt"', "manifest-says-otherwise"),
        ("file = ", "dataset-not-usable"),
    ],
)
def test_a_manifest_of_its_own_refuses_another_file(put, upload, manifest: str, code: str) -> None:
    folder = put("facts", manifest)
    with pytest.raises(UploadRefused) as caught:
        upload(rows=CHAT, dialect="openai")
    assert caught.value.code == code
    assert sorted(path.name for path in folder.iterdir()) == ["dataset.toml", "rows.jsonl"]


def test_a_name_of_another_directory_is_taken(put, upload) -> None:
    put("elsewhere", 'file = "rows.jsonl"\nname = "facts"')
    with pytest.raises(UploadRefused, match="'elsewhere'") as caught:
        upload()
    assert caught.value.code == "name-taken"


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "directory"])
def test_what_stands_at_the_place_is_left_alone(shelf: Path, tmp_path: Path, upload, kind: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place = shelf / "facts"
    if kind == "file":
        place.write_text("mine")
    elif kind == "directory":
        place.joinpath("facts.jsonl").mkdir(parents=True)
    else:
        place.symlink_to(outside if kind == "link" else tmp_path / "nowhere")
    with pytest.raises(UploadRefused) as caught:
        upload()
    assert caught.value.code == "name-taken"
    assert [*outside.iterdir()] == []


def test_a_link_at_the_data_file_is_replaced_and_not_followed(shelf: Path, tmp_path: Path, put, upload) -> None:
    outside = tmp_path / "outside.jsonl"
    outside.write_bytes(b"mine")
    put("facts", 'file = "facts.jsonl"').joinpath("facts.jsonl").symlink_to(outside)
    upload()
    assert outside.read_bytes() == b"mine"
    assert not (shelf / "facts/facts.jsonl").is_symlink()


def test_a_mended_file_makes_a_problem_a_dataset_again(shelf: Path, put, upload) -> None:
    put("facts", 'file = "facts.jsonl"', rows=None)
    assert Shelf(shelf).listing().problems
    upload()
    assert not Shelf(shelf).listing().problems


def test_a_file_is_recorded(upload, database: Database) -> None:
    records = Records(database)
    dataset, _ = upload(records=records)
    record = records.get("facts")
    assert record is not None
    assert record.sha256 == dataset.content.sha256


def test_a_database_that_fails_at_the_commit_leaves_no_file(shelf: Path, upload, database: Database) -> None:
    upload(rows=ROW * 2)
    with database.writing() as session:
        session.execute(text("drop table dataset_versions"))
    for filename in ("facts.jsonl", "more.jsonl"):
        with pytest.raises(DatabaseUnavailable):
            upload(filename, records=Records(database))
    (dataset,) = Shelf(shelf).listing().datasets
    assert dataset.content.num_records == 2
    assert seen(shelf) == ["facts/dataset.toml", "facts/facts.jsonl"]
    assert Records(database).get("facts") is None


@pytest.fixture
def closed_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operating system refuses every rename."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", refuse)


def test_a_name_that_is_refused_takes_the_record_back(shelf, upload, closed_directory, database) -> None:
    records = Records(database)
    with pytest.raises(OSError, match="No space"):
        upload(records=records)
    assert records.get("facts") is None
    assert seen(shelf) == []
    assert not (shelf / "facts").exists()


def test_a_full_disk_leaves_nothing(shelf: Path) -> None:
    def fill() -> None:
        with Incoming(shelf) as incoming:
            incoming.write(b"x" * 10_000)
            incoming.finish()

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            fill()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert seen(shelf) == []


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_not(shelf: Path, upload) -> None:
    (shelf / ".uploads").mkdir()
    (shelf / ".uploads/dead").write_bytes(b"half of a")
    with Incoming(shelf) as living:
        upload()
        assert [path.name for path in (shelf / ".uploads").iterdir()] == [living.path.name]


def test_uploads_of_one_name_come_one_after_another(shelf: Path, upload, database: Database) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            upload(rows=ROW * number, records=Records(database))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (dataset,) = Shelf(shelf).listing().datasets
    record = Records(database).get("facts")
    assert errors == []
    assert record is not None
    assert record.sha256 == dataset.content.sha256
    assert len(Records(database).versions("facts")) == 8


def test_a_file_of_this_machine_is_added(shelf: Path, write) -> None:
    path = write("rows.jsonl", ROW)
    assert added(path, Shelf(shelf))[0].manifest.name == "rows"
    assert added(path, Shelf(shelf), "facts")[1]
    assert not added(path, Shelf(shelf), "facts")[1]
    assert path.read_bytes() == ROW


def test_a_shelf_that_cannot_be_written_is_told(write) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        added(write("rows.jsonl", ROW), Shelf(write("shelf.txt", "a file")))


KILLED = """
import os, sys
from pathlib import Path
from turnmill.shelf import upload
from turnmill.shelf.database import Database
from turnmill.shelf.records import Records
from turnmill.shelf.scan import Shelf
renames = []
def rename(*given, real=os.rename, **more):
    renames.append(given)
    if len(renames) == int(sys.argv[1]):
        os.kill(os.getpid(), 9)
    real(*given, **more)
os.rename = rename
shelf = Path(sys.argv[2])
with upload.Incoming(shelf) as incoming:
    incoming.write(sys.argv[4].encode())
    upload.publish(incoming, upload.wanted_of("facts.jsonl"), Shelf(shelf), Records(Database(sys.argv[3])))
"""


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("replaces", [True, False])
def test_a_writer_that_is_killed_shows_nothing_half(
    shelf: Path, upload, tmp_path: Path, at: int, replaces: bool
) -> None:
    if replaces:
        upload(rows=ROW * 2)
    before = Shelf(shelf).listing()
    place = str(tmp_path / "state.db")
    command = [sys.executable, "-c", KILLED, str(at), str(shelf), place, (ROW * 5).decode()]
    killed = subprocess.run(command, check=False).returncode
    assert killed == (0 if replaces and at == 2 else -9)
    records = Records(Database(place))
    if killed:
        assert Shelf(shelf).listing() == before
        assert [record.num_records for record in records.sync(before).values()] == ([2] if replaces else [])
    upload(rows=ROW * 3, records=records)
    assert seen(shelf) == ["facts/dataset.toml", "facts/facts.jsonl"]
    assert records.sync(Shelf(shelf).listing())["facts"].num_records == 3
