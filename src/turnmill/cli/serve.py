"""Serve a shelf of datasets and its jobs over REST."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import notice
from turnmill.cli.shelf_options import (
    DATABASE,
    DATABASE_VARIABLE,
    JOBS,
    MODELS,
    SHELF,
    Places,
    named_databases,
    named_models,
    open_database,
    places,
    require_packages,
)
from turnmill.cli.worker import LEASE, SIDECAR, SIDECAR_SECRET, carrier_of
from turnmill.errors import UsageError, shell_word

if TYPE_CHECKING:
    from turnmill.server.service import Serve
    from turnmill.shelf.database import Database

MEGABYTE = 1024 * 1024


@click.command()
@SHELF
@DATABASE
@JOBS
@MODELS
@click.option("--host", default="127.0.0.1", show_default=True, help="Other addresses need an access token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8377, show_default=True, help="0: any free one.")
@click.option("--api-prefix", default="/v1", show_default=True, metavar="PATH", help="What paths begin with.")
@click.option(
    "--allowed-host", "hosts", multiple=True, metavar="NAME", help="What the server is called by; repeatable."
)
@click.option("--read-only", is_flag=True, help="Refuse whatever changes anything.")
@click.option("--max-megabytes", type=click.IntRange(1, 4096), default=64, show_default=True, help="Of a data file.")
@click.option(
    "--other-database", "others", multiple=True, metavar="NAME=PATH|URL", help="Answers `?db=NAME`: no datasets."
)
@click.option("--workers", type=click.IntRange(0, 64), default=0, show_default=True, help="Begin so many workers, too.")
@SIDECAR
@SIDECAR_SECRET
@LEASE
def command(
    shelf: Path | None,
    database: str,
    jobs: Path | None,
    models: tuple[str, ...],
    host: str,
    port: int,
    **how: Any,
) -> None:
    """Serves the datasets of a directory, its jobs and their events, until it is stopped.

    Beside the database, unless named: `datasets_training/`, the datasets, and `jobs/`, the folders of jobs.
    """
    require_packages()
    from turnmill.http_service import address_of
    from turnmill.server.app import create_app
    from turnmill.server.running import listening, run

    where = places(database, shelf, jobs)
    opened = open_database(database)
    options = _options(where, models, host, how)
    _require_token(host, opened, database)
    app = create_app(where.shelf, opened, options, other_databases=named_databases(how["others"]))
    place = listening(host, port)
    notice(f"{address_of(place)}{options.api_prefix} serves {where.shelf}")
    run(app, place, [_worker_arguments(where, models, how)] * how["workers"], {DATABASE_VARIABLE: database})


def _options(where: Places, models: tuple[str, ...], host: str, how: dict[str, Any]) -> Serve:
    from turnmill.http_service import is_loopback
    from turnmill.server.service import Serve

    prefix = how["api_prefix"]
    if prefix and (not prefix.startswith("/") or prefix.endswith("/") or not prefix.isascii() or "{" in prefix):
        raise UsageError(f"--api-prefix is {prefix!r}; expected a path like /v1", next_step="--api-prefix /v1")
    own = f"[{host}]" if ":" in host else host
    local = (*Serve().allowed_hosts, own.lower()) if is_loopback(host) else ()
    return Serve(
        api_prefix=prefix,
        read_only=how["read_only"],
        models=named_models(models),
        jobs=where.jobs.resolve(),
        allowed_hosts=(*local, *(name.lower() for name in how["hosts"])),
        max_bytes=how["max_megabytes"] * MEGABYTE,
        sidecar=carrier_of(how["sidecar"], how["sidecar_secret_file"]),
    )


def _require_token(host: str, database: Database, address: str) -> None:
    """Whoever is reached from other machines lets nobody in without a token."""
    from turnmill.http_service import is_loopback
    from turnmill.shelf.access import needs_tokens

    if not is_loopback(host) and not needs_tokens(database):
        what = f"{host} can be reached from other machines, and no access token was made"
        next_step = f"turnmill access-token new admin --scope admin --database {shell_word(address)}"
        raise UsageError(what, next_step=next_step)


def _worker_arguments(where: Places, models: tuple[str, ...], how: dict[str, Any]) -> list[str]:
    """All but the database, whose address can hold a password: whoever lists the processes sees their arguments."""
    arguments = ["--jobs", str(where.jobs), "--lease", str(how["lease_s"])]
    for name in models:
        arguments += ["--models", name]
    for name in ("sidecar", "sidecar_secret_file"):
        if how[name] is not None:
            arguments += [f"--{name.replace('_', '-')}", str(how[name])]
    return arguments
