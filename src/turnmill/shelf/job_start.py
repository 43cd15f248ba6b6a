"""Making a job: its dataset is found on the shelf and taken along before it stands in the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pydantic import ValidationError

from turnmill.errors import StaleError, UsageError
from turnmill.shelf.database import Database
from turnmill.shelf.job_folder import remove_folder, take_along
from turnmill.shelf.job_options import REQUEST, Asked, Audit, Evaluate, Train
from turnmill.shelf.jobs import Jobs
from turnmill.shelf.records import Records
from turnmill.shelf.scan import Dataset, Listing
from turnmill.shelf.tables import Job, new_id
from turnmill.shelf.work import model_named

TIMES = 5
"""A data file that changes while it is taken is looked at again so often."""


def start_job(
    asked: Asked,
    listed: Callable[[], Listing],
    database: Database,
    folder: Path,
    models: Mapping[str, Path],
    key: str | None = None,
) -> Job:
    """Put a job into the queue, with the dataset as it is now.

    Args:
        asked: the job.
        listed: looks at the shelf.
        database: of the queue and the records.
        folder: of all jobs.
        models: name → directory of those that the job may name; a `train` job names one of the sidecar's.
        key: a job that was made with it before is given in place of a new one.

    Raises:
        UsageError: no usable dataset has the name, or no model or job that could be worked on.
    """
    jobs, job_id = Jobs(database), new_id()
    kind = asked.model_dump()["kind"]
    job = Job(id=job_id, kind=kind, dataset=asked.dataset, options=asked.options(), idempotency_key=key)
    before = jobs.made_before(job)
    if before is not None:  # whatever has become of the dataset since
        return before
    _require_model(asked, jobs, models)
    dataset = _taken(asked.dataset, listed, folder, job_id)
    job.filename, job.sha256 = dataset.filename, dataset.content.sha256
    try:
        Records(database).put(asked.dataset, dataset.content)
        made = jobs.add(job)
    except BaseException:
        remove_folder(folder, job_id)
        raise
    if made.id != job_id:
        remove_folder(folder, job_id)
    return made


def asked_like(job: Job) -> Asked:
    """What a job was asked for with, to be asked for once more.

    Raises:
        UsageError: this version knows no such job.
    """
    try:
        asked: Asked = REQUEST.validate_python({"kind": job.kind, "dataset": job.dataset, **job.options})
    except ValidationError as error:
        first = error.errors()[0]
        named = ".".join(map(str, first["loc"][1:])) or "kind"
        raise UsageError(f"the job {job.id} cannot be started again: {named}: {first['msg']}") from None
    return asked


def _taken(name: str, listed: Callable[[], Listing], folder: Path, job_id: str) -> Dataset:
    """The dataset, once it lies in the job's folder as it was listed."""
    for times_left in reversed(range(TIMES)):
        dataset = listed().dataset(name)
        try:
            take_along(folder, job_id, dataset)
            break
        except StaleError:
            if not times_left:
                raise
    return dataset


def _require_model(asked: Asked, jobs: Jobs, models: Mapping[str, Path]) -> None:
    if isinstance(asked, Train):
        return
    model_named(models, getattr(asked, "model", None))
    if isinstance(asked, Evaluate | Audit) and asked.job is not None:
        trained = jobs.get(asked.job)
        if trained.kind != "train" or trained.status != "done":
            what = f"the job {trained.id} is {trained.kind} and {trained.status}"
            raise UsageError(f"{what}; expected a train job that is done")
