"""What a worker does for a job: commands of this machine, or a run of the sidecar that it follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from turnmill.errors import UsageError
from turnmill.shelf.database import Database
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.tables import Job
from turnmill.shelf.work import Commands, Work, tasks_of


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a worker has at hand."""

    database: Database
    jobs: Path
    """The folder of all jobs."""
    models: Mapping[str, Path]
    """Name → directory."""

    def work_of(self, job: Job) -> Work:
        """What is to be done for a job.

        Raises:
            UsageError: it cannot be done here.
        """
        folder = JobFolder(self.jobs / job.id)
        if not folder.dataset.exists():
            what = f"the folder of the job, {folder.path}, is not there; the worker needs the --jobs of the server"
            raise UsageError(what)
        return Commands(folder, tasks_of(job, folder, self.models))
