"""The database of a shelf: SQLite or PostgreSQL, brought to the tables of this version when it is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from turnmill.errors import TurnmillError, UsageError, redacted, shell_word

try:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy import Connection, create_engine, event, make_url, text
    from sqlalchemy.engine import URL
    from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, NoSuchModuleError
    from sqlalchemy.exc import TimeoutError as NoFreeConnection
    from sqlalchemy.orm import Session
except ModuleNotFoundError as missing:  # pragma: no cover - the extra is installed wherever tests run
    what = f"the shelf's database needs {missing.name}, which is not installed"
    raise UsageError(what, next_step="pip install 'turnmill[serve]'") from None

MIGRATIONS = Path(__file__).with_name("migrations")
BUSY_TIMEOUT_MS = 30_000
"""How long a writer waits for another one in SQLite."""
MIGRATING = 0x7475726E
"""Number of PostgreSQL's lock that lets one process at a time bring the tables up."""
_WRITES = "turnmill_writes"


class DatabaseUnavailable(TurnmillError):
    """The database does not answer; what it was asked for was not done."""

    exit_code = 1


class Database:
    """Sessions with a database whose tables are those of this version.

    Args:
        address: the path of a SQLite file, or a URL (`postgresql://USER@HOST/NAME`, `sqlite:///PATH`).

    Raises:
        UsageError: no such kind of database, it cannot be opened, or a later version of turnmill made its tables.
    """

    def __init__(self, address: str | Path) -> None:
        self.url = url_of(address)
        self._engine = _engine_of(self.url)
        self._writing = self._engine.execution_options(**{_WRITES: True})
        self._counter: Any = None
        self._counting = Lock()
        try:
            self._bring_up()
        except DBAPIError as error:
            self.close()
            raise UsageError(f"cannot open the database {self}: {_said(error)}", next_step=_look(self.url)) from None
        except CommandError:
            self.close()
            what = f"the tables of {self} are those of a later version of turnmill; nothing was changed"
            raise UsageError(what, next_step="pip install --upgrade turnmill") from None
        if self.is_sqlite and self.url.database not in (None, "", ":memory:"):
            event.listen(self._engine, "do_connect", _require_file(str(self.url.database)))

    def __str__(self) -> str:
        return redacted(self.url.render_as_string(hide_password=True))

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of this machine."""
        return self.url.get_backend_name() == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that sees one state of the database.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        with _told(self), Session(self._engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session whose changes are kept together at its end, or none of them if the body raises.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        with _told(self), Session(self._writing, expire_on_commit=False) as session, session.begin():
            yield session

    def ping(self) -> None:
        """Ask it for an answer.

        Raises:
            DatabaseUnavailable: there is none.
        """
        with self.reading() as session:
            session.execute(text("select count(*) from alembic_version"))

    def changes(self) -> int | None:
        """A number that is another one once anybody has committed anything; None where none can be had cheaply.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        if not self.is_sqlite or not self.url.database or self.url.database == ":memory:":
            return None
        with _told(self), self._counting:
            if self._counter is None:
                self._counter = self._engine.raw_connection()
                self._counter.detach()  # its own, for the number is of what other connections did
            cursor = self._counter.cursor()
            try:
                return int(cursor.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error as error:
                raise DatabaseUnavailable(f"the database {self} does not answer: {error}") from None
            finally:
                cursor.close()

    def close(self) -> None:
        """Let every connection go."""
        with self._counting:
            if self._counter is not None:
                self._counter.close()
                self._counter = None
        self._engine.dispose()

    def _bring_up(self) -> None:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        with self._writing.begin() as connection:
            if not self.is_sqlite:  # SQLite's own transaction lets one writer in
                connection.execute(text(f"select pg_advisory_xact_lock({MIGRATING})"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def url_of(address: str | Path) -> URL:
    """The URL of a database; PostgreSQL is spoken to by psycopg.

    Raises:
        UsageError: no such kind of database.
    """
    if "://" not in str(address):
        return URL.create("sqlite", database=str(address))
    try:
        url = make_url(str(address))
    except ArgumentError:
        raise UsageError(f"{redacted(str(address))!r} is no address of a database", next_step=_EXPECTED) from None
    if url.get_backend_name() == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        what = f"no database of the kind {url.get_backend_name()!r} is served; expected sqlite or postgresql"
        raise UsageError(what, next_step=_EXPECTED)
    return url


_EXPECTED = "--database PATH, or --database postgresql://USER@HOST/NAME"


def _engine_of(url: URL) -> Any:
    shared: dict[str, Any] = {"hide_parameters": True, "json_serializer": _json}
    if url.get_backend_name() == "sqlite":
        if url.database and url.database != ":memory:":
            _require_directory(Path(url.database).parent)
        how = {"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False}
        engine = create_engine(url, connect_args=how, **shared)
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10}, **shared)
    except NoSuchModuleError:
        raise UsageError("PostgreSQL needs psycopg", next_step="pip install 'turnmill[serve]'") from None


def _json(value: Any) -> str:
    """As both databases take it: a number that is none, such as a loss that went wrong, is null."""
    return msgspec.json.encode(value).decode()


def _require_file(path: str) -> Callable[..., None]:
    """Refuses connections once the file is gone: SQLite would begin an empty one, which knows of no access token."""

    def look(*_: object) -> None:
        if not Path(path).exists():
            raise sqlite3.OperationalError("the file is not there any more")

    return look


def _require_directory(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"cannot make the directory of the database, {folder}: {error.strerror}"
        raise UsageError(what, next_step=f"ls -ld {shell_word(folder)}") from None


def _set_up_sqlite(connection: Any, _record: object) -> None:
    """Many readers beside one writer, foreign keys held, and every commit on the disk."""
    connection.isolation_level = None  # transactions begin where we say so
    for setting in (f"busy_timeout={BUSY_TIMEOUT_MS}", "journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    """Begin; as a writer at once where it will write: one that began as a reader may not become one later."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _told(database: Database) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if isinstance(error, IntegrityError | DataError):  # of what was asked, not of the database
            raise
        raise DatabaseUnavailable(f"the database {database} does not answer: {_said(error)}") from None
    except NoFreeConnection:
        raise DatabaseUnavailable(f"every connection with the database {database} waits for its answer") from None


def _said(error: DBAPIError) -> str:
    """The driver's words, on one line and without credentials."""
    lines = redacted(str(error.orig)).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__


def _look(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return f"ls -l {shell_word(url.database)}"
    return f"pg_isready -h {shell_word(url.host or 'localhost')} -p {url.port or 5432}"
