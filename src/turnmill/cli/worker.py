"""Do the jobs of a service, one at a time."""

from __future__ import annotations

import logging
import os
import signal
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import notice
from turnmill.cli.shelf_options import (
    DATABASE,
    JOBS,
    MODELS,
    named_models,
    open_database,
    places,
    require_packages,
    secret,
)

if TYPE_CHECKING:
    from turnmill.shelf.carry import Carrier
    from turnmill.shelf.worker import Worker

SIDECAR_VARIABLE = "TURNMILL_SIDECAR_SECRET"
LEASE = click.option(
    "--lease",
    "lease_s",
    type=click.FloatRange(1, 3600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="After so long without a word of it a worker counts as lost.",
)
SIDECAR = click.option("--sidecar", metavar="URL", help="The training service that `train` jobs are carried to.")
SIDECAR_SECRET = click.option(
    "--sidecar-secret-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Holds the secret of the sidecar; default: ${SIDECAR_VARIABLE}.",
)


@click.command()
@DATABASE
@JOBS
@MODELS
@SIDECAR
@SIDECAR_SECRET
@LEASE
@click.option("--beside-server", is_flag=True, hidden=True, help="End with whoever holds the other end of stdin.")
@click.option("--until-empty", is_flag=True, help="End when no job is left, in place of waiting for more.")
def command(
    database: str,
    jobs: Path | None,
    models: tuple[str, ...],
    lease_s: float,
    beside_server: bool,
    until_empty: bool,
    **sidecar: Any,
) -> None:
    """Takes jobs from the queue and does them, each command of a job in a process of its own.

    A worker that is stopped puts its job back; one that is killed loses it to the next worker within a minute.
    """
    require_packages()
    from turnmill.shelf.job_work import Workplace
    from turnmill.shelf.jobs import Jobs
    from turnmill.shelf.worker import Worker

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    where = places(database, None, jobs)
    opened = open_database(database)
    place = Workplace(opened, where.jobs.resolve(), named_models(models), carrier_of(**sidecar))
    worker = Worker(Jobs(opened, timedelta(seconds=lease_s)), place.work_of)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    if beside_server:
        threading.Thread(target=_stop_with_server, args=(worker,), daemon=True).start()
    notice(f"worker {worker.name} takes jobs of {opened}")
    worker.run(until_empty=until_empty)


def carrier_of(sidecar: str | None, sidecar_secret_file: Path | None) -> Carrier | None:
    """Who speaks to the sidecar, where there is one.

    Raises:
        UsageError: the address is none of HTTP, or the secret cannot be read.
    """
    from turnmill.shelf.carry import Carrier

    return None if sidecar is None else Carrier(sidecar, secret(sidecar_secret_file, SIDECAR_VARIABLE))


def _stop_with_server(worker: Worker) -> None:
    """Wait for the server's end of the pipe to be gone: however it ended, no worker of it is left."""
    while os.read(0, 1):
        pass
    worker.stop()
