"""The jobs that `turnmill job` speaks of: a server's, or those of a database on this machine; said alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from turnmill.cli.remote import Remote
from turnmill.cli.shelf_options import Places
from turnmill.errors import UsageError
from turnmill.server.jobs import JobListed, JobSaid, piece_of
from turnmill.shelf.database import Database
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.job_options import REQUEST, Asked
from turnmill.shelf.job_start import asked_like, start_job
from turnmill.shelf.jobs import ENDED, Jobs
from turnmill.shelf.scan import Shelf

Answer = dict[str, Any]
PATH = "/training/jobs"


class LocalQueue:
    """Jobs of a database.

    Args:
        database: of the jobs.
        where: its shelf and its folder of jobs.
        models: name → directory of those that a job may name.
    """

    def __init__(self, database: Database, where: Places, models: Mapping[str, Path]) -> None:
        self._database = database
        self._jobs = Jobs(database)
        self._where = where
        self._models = models

    def start(self, asked: Answer) -> Answer:
        """Put a job into the queue.

        Raises:
            UsageError: it cannot be one.
        """
        try:
            request = REQUEST.validate_python(asked)
        except ValidationError as error:
            first = error.errors()[0]
            named = ".".join(map(str, first["loc"][1:])) or "kind"
            raise UsageError(f"{named}: {first['msg']}", next_step="turnmill job start --help") from None
        return self._started(request)

    def retry(self, job_id: str) -> Answer:
        """Put a job like another one into the queue, with the dataset as it is now.

        Raises:
            UsageError: there is none of that id, or it cannot be one any more.
        """
        return self._started(asked_like(self._jobs.get(job_id)))

    def _started(self, asked: Asked) -> Answer:
        listed = Shelf(self._where.shelf).listing
        job = start_job(asked, listed, self._database, self._where.jobs.resolve(), self._models)
        return JobSaid.model_validate(job).model_dump(mode="json")

    def newest(self, limit: int) -> list[Answer]:
        """So many jobs."""
        return [JobListed.model_validate(job).model_dump(mode="json") for job in self._jobs.newest(limit=limit)]

    def show(self, job_id: str) -> Answer:
        """One job."""
        return JobSaid.model_validate(self._jobs.get(job_id)).model_dump(mode="json")

    def log(self, job_id: str, offset: int) -> Answer:
        """A piece of its log."""
        ended = self._jobs.get(job_id).status in ENDED
        return piece_of(JobFolder(self._where.jobs / job_id).log, offset, ended=ended).model_dump()

    def cancel(self, job_id: str) -> Answer:
        """Ask for its end."""
        return JobSaid.model_validate(self._jobs.cancel(job_id)).model_dump(mode="json")


class RemoteQueue:
    """Jobs of a server.

    Args:
        server: that has them.
    """

    def __init__(self, server: Remote) -> None:
        self._server = server

    def start(self, asked: Answer) -> Answer:
        """Put a job into the queue."""
        found: Answer = self._server.post(PATH, asked)
        return found

    def newest(self, limit: int) -> list[Answer]:
        """So many jobs."""
        found: list[Answer] = self._server.get(PATH, limit=limit)["jobs"]
        return found

    def show(self, job_id: str) -> Answer:
        """One job."""
        return self._of(job_id)

    def log(self, job_id: str, offset: int) -> Answer:
        """A piece of its log."""
        return self._of(job_id, "/log", offset=offset)

    def cancel(self, job_id: str) -> Answer:
        """Ask for its end."""
        found: Answer = self._server.post(f"{_path(job_id)}/cancel")
        return found

    def retry(self, job_id: str) -> Answer:
        """Put a job like another one into the queue."""
        found: Answer = self._server.post(f"{_path(job_id)}/retry")
        return found

    def _of(self, job_id: str, path: str = "", **query: Any) -> Answer:
        found: Answer = self._server.get(f"{_path(job_id)}{path}", **query)
        return found


def _path(job_id: str) -> str:
    if not job_id.isalnum():
        raise UsageError(f"{job_id!r} is no id of a job", next_step="turnmill job list")
    return f"{PATH}/{job_id}"
