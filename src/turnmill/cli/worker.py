"""Do the jobs of a service, one at a time."""

from __future__ import annotations

import logging
import signal
from pathlib import Path

import click

from turnmill.cli.output import notice
from turnmill.cli.shelf_options import DATABASE, JOBS, MODELS, named_directories, open_database, places

SIDECAR_VARIABLE = "TURNMILL_SIDECAR_SECRET"
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
@click.option("--until-empty", is_flag=True, help="End when no job is left, in place of waiting for more.")
def command(
    database: str,
    jobs: Path | None,
    models: tuple[str, ...],
    sidecar: str | None,
    sidecar_secret_file: Path | None,
    until_empty: bool,
) -> None:
    """Takes jobs from the queue and does them, each command of a job in a process of its own.

    A worker that is stopped puts its job back; one that is killed loses it to the next worker within a minute.
    """
    from turnmill.shelf.job_work import Workplace
    from turnmill.shelf.jobs import Jobs
    from turnmill.shelf.worker import Worker

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    where = places(database, None, jobs)
    opened = open_database(database)
    place = Workplace(opened, where.jobs.resolve(), named_directories(models))
    worker = Worker(Jobs(opened), place.work_of)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    notice(f"worker {worker.name} takes jobs of {opened}")
    worker.run(until_empty=until_empty)
