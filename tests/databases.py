"""Databases of tests: SQLite files, and a PostgreSQL server that is started here and nowhere else."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest

SETTINGS = "-c listen_addresses='' -c fsync=off -c max_connections=200"
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
"""Parameters of a fixture whose tests run on both."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """A server that speaks over a socket of its own; gives the URL of its first database."""
    place = Path(tempfile.mkdtemp(prefix="turnmill-postgres-"))
    place.chmod(0o755)
    data = place / "data"
    data.mkdir()
    if os.geteuid() == 0:
        shutil.chown(place, _user())
        shutil.chown(data, _user())
    try:
        _run("initdb", f"-D {data} -U postgres -A trust --no-sync -E UTF8")
        url = f"postgresql://postgres@/postgres?host={place}"
        start(url)
        try:
            yield url
        finally:
            stop(url)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def start(server: str) -> None:
    """Let a server answer, for the first time or again."""
    place = server.partition("host=")[2]
    _run("pg_ctl", f'-D {place}/data -l {place}/log -w -o "{SETTINGS} -k {place}" start')


def stop(server: str) -> None:
    """End a server as if its machine had lost power."""
    _run("pg_ctl", f"-D {server.partition('host=')[2]}/data -m immediate stop")


def _run(program: str, arguments: str) -> None:
    line = f"{_programs() / program} {arguments}"
    command = ["su", _user(), "-s", "/bin/sh", "-c", line] if os.geteuid() == 0 else ["/bin/sh", "-c", line]
    subprocess.run(command, check=True, capture_output=True, cwd="/")


@cache
def _user() -> str:
    """Whom the server runs as where the tests run as root, which it refuses to."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@cache
def _programs() -> Path:
    """Where the programs of the server lie."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if found:
        return found[-1]
    on_path = shutil.which("initdb")
    assert on_path, "PostgreSQL is not installed: apt-get install postgresql"
    return Path(on_path).parent


def new_database(server: str) -> str:
    """The URL of an empty database of that server."""
    from sqlalchemy import create_engine, text

    name = f"t{uuid4().hex}"
    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:", 1), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"create database {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?", 1)
