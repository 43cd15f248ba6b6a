"""Start, list, follow and cancel jobs on the datasets of a shelf."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, notice, write, write_json, write_table
from turnmill.cli.remote import SERVER, TOKEN_FILE, Remote
from turnmill.cli.shelf_options import (
    DATABASE,
    JOBS,
    MODELS,
    SHELF,
    named_models,
    open_database,
    places,
    require_packages,
)
from turnmill.errors import HealthError, UsageError, quote, shell_word

if TYPE_CHECKING:
    from turnmill.cli.queues import LocalQueue, RemoteQueue

LOOK_S = 1.0
"""How often a log that is followed is looked at."""
_WITH_EXPONENT = re.compile(r"[0-9]+(\.[0-9]*)?[eE][+-]?[0-9]+")
"""1e-4, which YAML takes for a text."""
JSON = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
ID = click.argument("job_id", metavar="ID")


@click.group()
def command() -> None:
    """Starts, lists, follows and cancels jobs: of a server by its URL, or of a database that workers look at, too."""


def _placed(function: Any) -> Any:
    """The options that say whose jobs: a server's, or a database's."""
    for option in (TOKEN_FILE, SERVER, JOBS, DATABASE):
        function = option(function)
    return function


@command.command()
@click.argument("dataset")
@click.option("--kind", default="train", show_default=True, help="train, prepare, evaluate, audit or export.")
@click.option("--set", "options", multiple=True, metavar="NAME=VALUE", help="An option of the job; repeatable.")
@click.option("--follow", is_flag=True, help="Show its log until it has ended; exit 3 unless it is done.")
@SHELF
@MODELS
@_placed
@JSON
def start(dataset: str, kind: str, options: tuple[str, ...], follow: bool, as_json: bool, **where: Any) -> None:
    """Puts a job into the queue, with the dataset as it is now.

    Options: model, max_tokens, seed; of train also method, epochs, max_steps, learning_rate, batch_size; of
    evaluate and audit job, samples; of audit max_new_tokens; of export to.
    """
    queue = _queue(where)
    job = queue.start({"dataset": dataset, "kind": kind, **dict(_option(each) for each in options)})
    if as_json and not follow:
        write_json(job)
        return
    if not follow:
        write(job["id"])
        next_step(_command("logs", job["id"], where, "--follow"))
        return
    notice(job["id"])
    _follow(queue, job["id"])
    ended = queue.show(job["id"])
    if as_json:
        write_json(ended)
    if ended["status"] != "done":
        raise HealthError(f"the job is {ended['status']}: {ended['error'] or 'it was cancelled'}")


@command.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, metavar="N", help="The newest N.")
@_placed
@JSON
def list_command(limit: int, as_json: bool, **where: Any) -> None:
    """The newest jobs first."""
    jobs = _queue(where).newest(limit)
    if as_json:
        write_json(jobs)
        return
    columns = ("id", "kind", "dataset", "status", "created_at")
    write_table(["job", "kind", "dataset", "status", "made"], [[str(job[name]) for name in columns] for job in jobs])
    if jobs:
        next_step(_command("show", jobs[0]["id"], where))


@command.command()
@ID
@_placed
@JSON
def show(job_id: str, as_json: bool, **where: Any) -> None:
    """Everything that is known of one job."""
    job = _queue(where).show(job_id)
    if as_json:
        write_json(job)
        return
    write_table(["what", "is"], [[name, _said(value)] for name, value in job.items() if value not in (None, {}, "")])
    next_step(_command("logs", job_id, where))


@command.command()
@ID
@click.option("--follow", is_flag=True, help="Until the job has ended.")
@_placed
def logs(job_id: str, follow: bool, **where: Any) -> None:
    """What the commands of a job said."""
    queue = _queue(where)
    if follow:
        _follow(queue, job_id)
        return
    offset = 0
    while (piece := queue.log(job_id, offset))["text"]:
        click.echo(piece["text"], nl=False)
        offset = piece["next_offset"]


@command.command()
@ID
@_placed
def cancel(job_id: str, **where: Any) -> None:
    """Asks for the end of a job; one that has ended stays as it is."""
    job = _queue(where).cancel(job_id)
    is_asked = job["status"] == "running"
    write(f"{job_id}: {'its end is asked for' if is_asked else job['status']}")
    next_step(_command("show", job_id, where))


@command.command()
@ID
@SHELF
@MODELS
@_placed
@JSON
def retry(job_id: str, as_json: bool, **where: Any) -> None:
    """Starts a job with the options of this one, on the dataset as it is now; this one stays as it is."""
    job = _queue(where).retry(job_id)
    write_json(job) if as_json else write(job["id"])
    next_step(_command("logs", job["id"], where, "--follow"))


def _follow(queue: LocalQueue | RemoteQueue, job_id: str) -> None:
    offset = 0
    while True:
        piece = queue.log(job_id, offset)
        click.echo(piece["text"], nl=False)
        offset = piece["next_offset"]
        if piece["is_whole"]:
            return
        if not piece["text"]:
            time.sleep(LOOK_S)


def _queue(where: dict[str, Any]) -> LocalQueue | RemoteQueue:
    require_packages()
    from turnmill.cli.queues import LocalQueue, RemoteQueue

    if where["server"] is not None:
        return RemoteQueue(Remote(where["server"], where["token_file"]))
    named = places(where["database"], where.get("shelf"), where["jobs"])
    return LocalQueue(open_database(where["database"]), named, named_models(where.get("models", ())))


def _option(text: str) -> tuple[str, Any]:
    """`NAME=VALUE`, numbers as such.

    Raises:
        UsageError: something else.
    """
    import yaml

    name, is_set, value = text.partition("=")
    if not (name and is_set):
        raise UsageError(f"--set {quote(text)}: expected NAME=VALUE", next_step="--set max_steps=10")
    try:
        said = yaml.safe_load(value)
    except yaml.YAMLError:
        return name, value
    is_number = isinstance(said, str) and _WITH_EXPONENT.fullmatch(said) is not None
    return name, float(said) if is_number else said


def _said(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items() if not isinstance(item, dict | list))
    return str(value)


def _command(verb: str, job_id: str, where: dict[str, Any], *flags: str) -> str:
    named = [f"--{name} {shell_word(where[name])}" for name in ("server", "jobs") if where[name] is not None]
    if where["server"] is None:
        named.insert(0, f"--database {shell_word(where['database'])}")
    return " ".join([f"turnmill job {verb} {job_id}", *flags, *named])
