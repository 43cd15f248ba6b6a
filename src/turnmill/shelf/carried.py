"""A job that the sidecar does: its dataset is carried there, and the sidecar's run is followed from here."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from turnmill.errors import StaleError, TurnmillError, quote
from turnmill.shelf.background import Background
from turnmill.shelf.carry import Carrier, SidecarDown, SidecarRefused
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.metrics_mirror import MetricsMirror
from turnmill.shelf.tables import Job
from turnmill.shelf.work import Ended

LOOK_S = 1.0
"""How often the sidecar is asked how far it is."""
PATIENCE_S = 900.0
"""How long a sidecar that is down is waited for, once it has taken a job: it goes on where it was."""
TAKEN_S = 300.0
"""How long one that is down is waited for to take a job."""
DEADLINE_S = 30.0
"""Of one question: how far it is."""
CANCEL_S = 30.0
ENDED = {"done": "done", "failed": "failed", "cancelled": "cancelled"}
TOLD = ("state", "exit_code", "attempts", "model", "options")
"""What the result says of the run beside its progress."""


class Carried:
    """Work that the sidecar does.

    Args:
        job: of the kind `train`.
        folder: of the job.
        carrier: speaks to the sidecar.
        taken: called once the sidecar has the job and its data.
    """

    def __init__(self, job: Job, folder: JobFolder, carrier: Carrier, taken: Callable[[], None]) -> None:
        self._job_id, self._folder, self._carrier, self._taken = job.id, folder, carrier, taken
        self._progress: dict[str, Any] = {"state": "carrying"}
        self._metrics = MetricsMirror(folder.metrics, lambda after: carrier.metrics(job.id, after))
        options = sidecar_options(job, folder)
        self._call: Background[Mapping[str, Any]] = Background(
            lambda: carrier.start(job.id, job.filename, folder.dataset, options, deadline_s=TAKEN_S)
        )
        self._is_taken = False
        self._heard = self._asked = time.monotonic()

    def step(self) -> Ended | None:
        """Take the sidecar's answer, and ask again.

        Raises:
            SidecarDown: nobody took the job, or the one who did has not been heard of for long.
            SidecarRefused: the sidecar does not take it.
        """
        if self._call.is_done:
            try:
                run = self._call.result()
            except SidecarDown:
                if not self._is_taken or time.monotonic() - self._heard > PATIENCE_S:
                    raise
                self._progress |= {"sidecar": "down"}
            else:
                self._heard = time.monotonic()
                if (ended := self._told(run)) is not None:
                    return ended
            self._asked = time.monotonic()
            self._call = Background(self._look)
        return None

    def _look(self) -> Mapping[str, Any]:
        """The run as it is; asked not too often."""
        time.sleep(max(0.0, self._asked + LOOK_S - time.monotonic()))
        run = self._carrier.status(self._job_id, deadline_s=DEADLINE_S)
        self._mirror()  # behind the status: of a run that has ended, all is there
        return run

    def _mirror(self) -> None:
        self._mirror_log()
        self._metrics.follow()

    def _mirror_log(self) -> None:
        log = self._folder.log
        log.touch()
        while (part := self._carrier.log(self._job_id, log.stat().st_size))["text"]:
            with log.open("ab") as file:
                file.write(part["text"].encode())
            if part["next_offset"] != log.stat().st_size:  # bytes that were no UTF-8 became others
                os.truncate(log, part["next_offset"])

    def _told(self, run: Mapping[str, Any]) -> Ended | None:
        if not self._is_taken:
            self._taken()  # where the database does not answer, this is tried again
            self._is_taken = True
        known = {name: value for name, value in run["progress"].items() if value is not None}
        self._progress = {"state": run["state"], **known}
        if run["state"] not in ENDED:
            return None
        self._mirror()
        result = {name: run[name] for name in TOLD} | {"progress": known}
        return Ended(ENDED[run["state"]], run["error"], result)

    def progress(self) -> dict[str, Any] | None:
        """What the sidecar said last."""
        return self._progress

    def cancel(self) -> None:
        """Have the sidecar end its run; one that does not answer is told again by whoever cancels again."""
        if self._is_taken:
            self._end_run()
        else:
            Background(self._end_once_taken)

    def _end_once_taken(self) -> None:
        """The job is on its way: a run that it becomes only now is nobody's any more."""
        with suppress(TurnmillError):
            self._call.result()
        self._end_run()

    def _end_run(self) -> None:
        try:
            with suppress(SidecarRefused):  # there is no such run, or it has ended
                self._carrier.cancel(self._job_id, deadline_s=CANCEL_S)
        except SidecarDown:
            self._progress |= {"sidecar": "down"}

    def leave(self) -> None:
        """Nothing: the sidecar goes on, and the next worker finds its run by the job's id."""


def sidecar_options(job: Job, folder: JobFolder) -> dict[str, Any]:
    """The job's options as the sidecar names them, with the rows that the manifest holds out."""
    held = folder.recipe()["splits"].get("eval")
    split = {} if held is None else {"eval_fraction": held} if held < 1 else {"eval_rows": held}
    return {**split, **job.options}


def fetch_model(carrier: Carrier, job_id: str, model: Path) -> None:
    """Bring the model that a job trained here, whole or not at all.

    Raises:
        SidecarDown: nobody answers.
        SidecarRefused: the sidecar has no such model.
        StaleError: what came is not what the sidecar says it has.
    """
    if model.exists():
        return
    draft = Path(tempfile.mkdtemp(prefix=".model.", dir=model.parent))
    try:
        files = carrier.artefacts(job_id)
        if not files:
            raise StaleError(f"the sidecar has no model of the job {job_id} any more; train again")
        for file in files:
            target = draft / _inside(file["path"])
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as opened:
                carrier.fetch(job_id, file["path"], opened)
            with target.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
            if found != file["sha256"]:
                raise StaleError(f"{quote(file['path'])} of the model came with other bytes than the sidecar has")
        draft.rename(model)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _inside(path: str) -> PurePosixPath:
    found = PurePosixPath(path)
    if found.is_absolute() or ".." in found.parts or not found.parts:
        raise StaleError(f"the sidecar names a file of the model {quote(path)}; expected a path inside it")
    return found
