from __future__ import annotations

import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError

from turnmill.errors import UsageError
from turnmill.shelf.database import Database, DatabaseUnavailable, url_of
from turnmill.shelf.tables import DatasetRecord, Table

EAST = timezone(timedelta(hours=5))


def record(name: str = "facts.jsonl", **fields: object) -> DatasetRecord:
    return DatasetRecord(filename=name, size_bytes=10, num_records=1, sha256="a" * 64, **fields)


def test_migrations_make_the_tables_of_the_code(database: Database) -> None:
    engine = create_engine(database.url)
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), Table.metadata)
    engine.dispose()
    assert differences == []


def test_opened_again_it_keeps_what_it_holds(database: Database, database_url: str) -> None:
    with database.writing() as session:
        session.add(record())
    again = Database(database_url)
    with again.reading() as session:
        assert [found.filename for found in session.query(DatasetRecord)] == ["facts.jsonl"]
    again.close()


def test_times_are_utc_whatever_zone_they_were_said_in(database: Database) -> None:
    noon = datetime(2026, 7, 1, 12, tzinfo=EAST)
    with database.writing() as session:
        session.add(record(created_at=noon))
    with database.reading() as session:
        found = session.query(DatasetRecord).one().created_at
    assert (found, found.tzinfo) == (noon, UTC)


def test_what_raises_writes_nothing(database: Database) -> None:
    def fail_half_way() -> None:
        with database.writing() as session:
            session.add(record())
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    with database.reading() as session:
        assert session.query(DatasetRecord).count() == 0


def test_eight_writers_lose_nothing(database: Database) -> None:
    def write(number: int) -> None:
        for step in range(5):
            with database.writing() as session:
                session.add(record(f"{number}-{step}.jsonl"))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with database.reading() as session:
        assert session.query(DatasetRecord).count() == 40


def test_two_that_open_an_empty_database_at_once_both_do(database_url: str) -> None:
    opened: list[Database] = []
    openers = [threading.Thread(target=lambda: opened.append(Database(database_url))) for _ in range(4)]
    for opener in openers:
        opener.start()
    for opener in openers:
        opener.join()
    for database in opened:
        database.ping()
        database.close()
    assert len(opened) == 4


def test_tables_of_a_later_version_are_left_alone(database: Database, database_url: str) -> None:
    with database.writing() as session:
        session.execute(text("update alembic_version set version_num = '9999'"))
    with pytest.raises(UsageError, match="later version"):
        Database(database_url)


def test_a_database_that_is_gone_is_told(database: Database) -> None:
    with database.writing() as session:
        session.execute(text("drop table alembic_version"))
    with pytest.raises(DatabaseUnavailable, match="alembic_version"):
        database.ping()


def test_a_file_that_was_moved_away_is_not_begun_anew(tmp_path: Path) -> None:
    place, away = tmp_path / "turnmill.db", tmp_path / "away"
    database = Database(place)
    database.close()
    place.rename(away)
    with pytest.raises(DatabaseUnavailable, match="not there"):
        database.ping()
    assert not place.exists()
    away.rename(place)
    database.ping()
    database.close()


def test_more_who_ask_than_there_are_connections_are_told_so(database: Database) -> None:
    database._engine.pool._timeout = 0.01
    with ExitStack() as held:
        for _ in range(15):
            held.enter_context(database.reading()).execute(text("select 1"))
        with pytest.raises(DatabaseUnavailable, match="waits"):
            database.ping()
    database.ping()


def test_an_error_says_nothing_of_what_was_written(database: Database) -> None:
    with database.writing() as session:
        session.add(record("secret.jsonl"))
    with pytest.raises(IntegrityError) as caught, database.writing() as session:
        session.add(record("secret.jsonl"))
    assert "a" * 64 not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("mysql://host/name", "mysql"),
        ("://", "no address"),
        ("postgresql://user:secret@127.0.0.1:1/none", "cannot open"),
        ("/dev/null/turnmill.db", "cannot make the directory"),
    ],
)
def test_what_is_no_database_is_refused_without_its_password(address: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        Database(address)
    assert "secret" not in str(caught.value) + str(caught.value.next_step)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("these are notes, and no database at all; " * 40)
    with pytest.raises(UsageError, match="cannot open"):
        Database(tmp_path / "notes.db")


def test_postgres_is_spoken_to_by_psycopg() -> None:
    assert url_of("postgresql://user@host/name").drivername == "postgresql+psycopg"


def test_commits_of_anybody_change_the_number_that_sqlite_has(database: Database, database_url: str) -> None:
    before = database.changes()
    assert database.changes() == before
    other = Database(database_url)
    for writer in (database, other):
        with writer.writing() as session:
            session.add(record(f"{id(writer)}.jsonl"))
        after = database.changes()
        assert (after is None) if before is None else (after != before)
        before = after
    other.close()
    assert (before is None) == (not database.is_sqlite)
