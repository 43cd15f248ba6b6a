from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import event

from turnmill.shelf.content import Content
from turnmill.shelf.database import Database
from turnmill.shelf.records import Change, Records
from turnmill.shelf.scan import Shelf

ROW = b'{"instruction": "a", "output": "c"}\n'


@pytest.fixture
def records(database: Database) -> Records:
    return Records(database)


def content(sha256: str = "a", records: int = 1) -> Content:
    return Content(10 * records, records, sha256 * 64, is_usable=True)


def test_a_new_dataset_gets_a_record(records: Records, shelf: Path, put: Callable[..., Path]) -> None:
    put("facts")
    dataset = Shelf(shelf).listing().datasets[0]
    record = records.sync(Shelf(shelf).listing())["facts"]
    assert (record.filename, record.status, record.synced_at) == ("facts.jsonl", "stored", None)
    assert (record.size_bytes, record.num_records, record.sha256) == (49, 1, dataset.content.sha256)
    assert record.created_at == record.updated_at
    assert record.created_at.tzinfo is not None


def test_a_file_that_changed_is_stored_again(records: Records, shelf: Path, put: Callable[..., Path]) -> None:
    folder = put("facts")
    before = records.sync(Shelf(shelf).listing())["facts"]
    assert records.mark_synced("facts", before.sha256)
    folder.joinpath("rows.jsonl").write_bytes(ROW * 2)
    after = records.sync(Shelf(shelf).listing())["facts"]
    assert (after.id, after.created_at, after.num_records) == (before.id, before.created_at, 2)
    assert (after.status, after.synced_at) == ("stored", None)
    assert after.updated_at > before.updated_at


def test_nothing_is_written_where_nothing_changed(
    records: Records, database: Database, shelf: Path, put: Callable[..., Path]
) -> None:
    put("facts")
    records.sync(Shelf(shelf).listing())
    asked: list[str] = []
    event.listen(database._engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    records.sync(Shelf(shelf).listing())
    assert [statement.split()[0] for statement in asked if not statement.startswith("BEGIN")] == ["SELECT"]


def test_a_record_stays_when_its_dataset_goes(records: Records, shelf: Path, put: Callable[..., Path]) -> None:
    folder = put("facts")
    record = records.sync(Shelf(shelf).listing())["facts"]
    folder.joinpath("dataset.toml").rename(folder / "gone.toml")
    assert records.sync(Shelf(shelf).listing()) == {}
    kept = records.get("facts")
    assert kept is not None
    assert kept.id == record.id


def test_only_the_current_version_becomes_synced(records: Records) -> None:
    records.put("facts", content("a"))
    records.put("facts", content("b"))
    assert not records.mark_synced("facts", "a" * 64)
    assert not records.mark_synced("none", "b" * 64)
    assert records.mark_synced("facts", "b" * 64)
    record = records.get("facts")
    assert record is not None
    assert record.status == "synced"
    assert record.synced_at is not None


def test_versions_are_kept_by_content(records: Records) -> None:
    for sha256 in "aba":
        records.put("facts", content(sha256))
    found = records.versions("facts")
    assert [version.sha256[0] for version in found] == ["a", "b"]
    assert found[0].first_seen_at < found[1].first_seen_at < found[0].last_seen_at
    assert records.versions("none") == []


def test_changes_are_told_by_name(records: Records, shelf: Path, put: Callable[..., Path]) -> None:
    put("b")
    put("a", rows=ROW)
    listing = Shelf(shelf).listing()
    assert [(change.name, change.what) for change in records.changes(listing)] == [("a", "new"), ("b", "new")]
    shelf.joinpath("b", "rows.jsonl").write_bytes(ROW)
    listing = Shelf(shelf).listing()
    assert records.changes(listing) == [Change("b", "replaced", listing.datasets[1].content.sha256)]
    assert records.changes(listing) == []


@pytest.mark.parametrize("first", [True, False])
def test_what_was_put_can_be_taken_back(records: Records, first: bool) -> None:
    if not first:
        records.put("facts", content("a"))
    records.mark_synced("facts", "a" * 64)
    before = records.get("facts")
    records.put("facts", content("b"))
    records.take_back("facts", "b" * 64, before)
    after = records.get("facts")
    told = [(one.sha256, one.status, one.synced_at, one.updated_at) for one in (before, after) if one is not None]
    assert len(set(told)) == (0 if first else 1)
    assert [version.sha256[0] for version in records.versions("facts")] == ([] if first else ["a"])


def test_what_somebody_else_put_since_is_not_taken_back(records: Records) -> None:
    records.put("facts", content("b"))
    records.put("facts", content("c"))
    records.take_back("facts", "b" * 64, None)
    record = records.get("facts")
    assert record is not None
    assert record.sha256 == "c" * 64


def test_many_writers_of_the_same_new_names_agree(database_url: str, shelf: Path, put: Callable[..., Path]) -> None:
    for number in range(20):
        put(f"d{number}", rows=ROW * (number + 1))
    listing = Shelf(shelf).listing()
    databases = [Database(database_url) for _ in range(4)]
    gate = threading.Barrier(len(databases))
    ids: list[list[str]] = []

    def work(database: Database) -> None:
        gate.wait()
        found = Records(database).sync(listing)
        ids.append([found[name].id for name in sorted(found)])

    threads = [threading.Thread(target=work, args=[database]) for database in databases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for database in databases:
        database.close()
    assert len(ids) == 4
    assert {tuple(found) for found in ids} == {tuple(ids[0])}


def test_more_names_than_a_statement_has_variables(records: Records) -> None:
    found = {f"d{number}": content("a") for number in range(1100)}
    assert len(records._brought_up(found)[0]) == 1100
    assert records._brought_up(found)[1] == []
