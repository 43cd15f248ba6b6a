"""What a worker does for a job: commands of this machine, or a run of the sidecar that it follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from turnmill.errors import UsageError
from turnmill.shelf.carried import Carried, fetch_model
from turnmill.shelf.carry import Carrier
from turnmill.shelf.database import Database
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.records import Records
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
    carrier: Carrier | None = None
    """Speaks to the sidecar, where there is one."""

    def work_of(self, job: Job) -> Work:
        """What is to be done for a job.

        Raises:
            UsageError: it cannot be done here.
        """
        folder = JobFolder(self.jobs / job.id)
        if not folder.dataset.exists():
            what = f"the folder of the job, {folder.path}, is not there; the worker needs the --jobs of the server"
            raise UsageError(what)
        if job.kind == "train":
            return Carried(job, folder, self._sidecar(), lambda: self._synced(job))
        trained = job.options.get("job")
        if trained is None:
            return Commands(folder, tasks_of(job, folder, self.models))
        sidecar = self._sidecar()
        return Commands(folder, tasks_of(job, folder, self.models), lambda: fetch_model(sidecar, trained, folder.model))

    def _sidecar(self) -> Carrier:
        if self.carrier is None:
            what = "the worker has no sidecar, which trains models and keeps them"
            raise UsageError(what, next_step="turnmill worker --sidecar http://localhost:8378")
        return self.carrier

    def _synced(self, job: Job) -> None:
        """The sidecar has the dataset as it was when the job was made."""
        Records(self.database).mark_synced(job.dataset, job.sha256)
