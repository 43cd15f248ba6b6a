"""What the commands of a shelf and its service share: where its database, its jobs and its models are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnmill.errors import UsageError, quote, redacted, shell_word

if TYPE_CHECKING:
    from turnmill.shelf.database import Database

DEFAULT_DATABASE = "turnmill.db"
SHELF_NAME, JOBS_NAME = "datasets_training", "jobs"
PACKAGES = ("alembic", "fastapi", "prometheus_client", "python_multipart", "sqlalchemy", "urllib3", "uvicorn")
"""Of the extra `serve`."""
TOKEN_VARIABLE = "TURNMILL_TOKEN"
DATABASE_VARIABLE = "TURNMILL_DATABASE"

DATABASE = click.option(
    "--database",
    metavar="PATH|URL",
    default=DEFAULT_DATABASE,
    envvar=DATABASE_VARIABLE,
    show_default=True,
    help=f"A SQLite file, or postgresql://USER@HOST/NAME; or ${DATABASE_VARIABLE}.",
)
MODELS = click.option(
    "--models",
    multiple=True,
    metavar="NAME=DIR",
    help="A model directory that jobs and requests can name; repeatable.",
)
JOBS = click.option("--jobs", type=click.Path(path_type=Path), metavar="DIR", help="Where the folders of jobs are.")
SHELF = click.option("--shelf", type=click.Path(path_type=Path), metavar="DIR", help="The directory of the datasets.")


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything of one service is: beside the database, unless it is said."""

    database: str
    shelf: Path
    jobs: Path


def places(database: str, shelf: Path | None, jobs: Path | None) -> Places:
    """The places that are named, and the usual ones for those that are not."""
    beside = Path() if "://" in database else Path(database).parent
    return Places(database, shelf or beside / SHELF_NAME, jobs or beside / JOBS_NAME)


def require_packages() -> None:
    """Refuse to begin where what a service is made of is not installed.

    Raises:
        UsageError: a package is missing.
    """
    missing = next((name for name in PACKAGES if find_spec(name) is None), None)
    if missing is not None:
        what = f"a service needs {missing}, which is not installed"
        raise UsageError(what, next_step="pip install 'turnmill[serve]'")


def open_database(address: str) -> Database:
    """The database, its tables brought to this version.

    Raises:
        UsageError: it cannot be opened, or the packages for it are not installed.
    """
    from turnmill.shelf.database import Database

    return Database(address)


def named_models(named: Sequence[str]) -> dict[str, Path]:
    """Name → real directory of a model.

    Raises:
        UsageError: not NAME=DIR, a name that no job can say or that stands twice, or no directory of a model.
    """
    from turnmill.shelf.manifest import checked_name

    found: dict[str, Path] = {}
    for each in named:
        name, _, directory = each.partition("=")
        if not directory:
            raise UsageError(f"--models {shell_word(each)}: expected NAME=DIR", next_step="--models NAME=DIR")
        if checked_name(name) in found:
            raise UsageError(f"--models: two are named {name}", next_step="--models NAME=DIR")
        path = Path(os.path.realpath(Path(directory).expanduser()))
        if not (path / "config.json").is_file():
            what = f"--models {name}: {path} is no model: it has no config.json"
            raise UsageError(what, next_step=f"ls {shell_word(path)}")
        found[name] = path
    return found


def named_databases(named: Sequence[str]) -> dict[str, Database]:
    """Name → another database.

    Raises:
        UsageError: not NAME=PATH or NAME=URL, a name twice, or it cannot be opened.
    """
    found: dict[str, Database] = {}
    for each in named:
        name, is_named, address = each.partition("=")
        if not (is_named and name and address) or name in found:
            raise UsageError(f"--other-database {quote(redacted(each))}: expected a new NAME=PATH or NAME=URL")
        found[name] = open_database(address)
    return found


def secret(file: Path | None, variable: str) -> str | None:
    """A secret: what the file holds, else the environment; None where neither is there.

    Raises:
        UsageError: the file cannot be read, or is empty.
    """
    if file is None:
        return os.environ.get(variable) or None
    try:
        found = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot read the secret in {file}: {error}"
        raise UsageError(what, next_step=f"ls -l {shell_word(file)}") from None
    if not found:
        raise UsageError(f"the file of the secret, {file}, is empty")
    return found
