"""A worker: takes jobs from the queue, one at a time, and says that it still has them until they have ended."""

from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections.abc import Callable
from typing import Literal
from uuid import uuid4

from turnmill.errors import TurnmillError
from turnmill.shelf.database import DatabaseUnavailable
from turnmill.shelf.jobs import Jobs
from turnmill.shelf.tables import Job
from turnmill.shelf.work import Ended, Work

LOOK_S = 1.0
"""How often an empty queue is looked at."""
STEP_S = 0.2
"""How often work that runs is looked at."""
RENEWED = 0.1
"""Share of the lease after which the queue is told again that the worker has a job."""
LET_GO = 0.6
"""Share of the lease: work that the queue has heard nothing of for so long is left, soon another worker has it."""
LOG = logging.getLogger(__name__)


class Worker:
    """Takes jobs until it is stopped.

    Args:
        jobs: the queue.
        work_of: what is to be done for a job; what it raises, the job has failed of.
    """

    def __init__(self, jobs: Jobs, work_of: Callable[[Job], Work]) -> None:
        self.name = f"{platform.node()}/{os.getpid()}/{uuid4().hex[:8]}"[-128:]
        self._jobs = jobs
        self._work_of = work_of
        self._stopping = threading.Event()
        self._renew_s, self._let_go_s = (jobs.lease.total_seconds() * share for share in (RENEWED, LET_GO))

    def stop(self) -> None:
        """Let it end soon; a job that it has goes back into the queue."""
        self._stopping.set()

    def run(self, *, until_empty: bool = False) -> None:
        """Take jobs until it is stopped, or nothing is left to take."""
        while not self._stopping.is_set():
            try:
                job = self._jobs.take(self.name)
            except DatabaseUnavailable as error:
                LOG.warning("%s", error)
                job = None
            if job is not None:
                self._do(job)
            elif until_empty:
                return
            else:
                self._stopping.wait(LOOK_S)

    def _do(self, job: Job) -> None:
        LOG.info("job %s: %s of %s, attempt %d", job.id, job.kind, job.dataset, job.attempt)
        try:
            work = self._work_of(job)
        except Exception as error:
            self._finish(job, _failed(job, error))
            return
        ended: Ended | None
        try:
            ended = self._followed(job, work)
        except Exception as error:
            ended = _failed(job, error)
            _end_for_good(job, work)
        except BaseException:
            work.leave()
            raise
        if ended is not None:
            self._finish(job, ended)

    def _followed(self, job: Job, work: Work) -> Ended | None:
        """How the work ended; None where it is another worker's now."""
        heard = renewed = time.monotonic()
        while True:
            ended = _stepped(job, work)
            if ended is not None:
                self._renewed(job, work)
                return ended
            if self._stopping.is_set():
                work.leave()
                self._give_back(job)
                return None
            if time.monotonic() - renewed > self._renew_s:
                renewed = time.monotonic()
                said = self._renewed(job, work)
                if said == "cancel":
                    work.cancel()
                    return Ended("cancelled")
                if said == "go on":
                    heard = renewed
                elif said == "lost" or renewed - heard > self._let_go_s:
                    LOG.warning("job %s: another worker has it, or soon will", job.id)
                    work.leave()
                    return None
            self._stopping.wait(STEP_S)

    def _give_back(self, job: Job) -> None:
        try:
            self._jobs.give_back(job.id, self.name)
        except DatabaseUnavailable as error:  # it is nobody's once the lease is over
            LOG.warning("job %s: %s", job.id, error)

    def _renewed(self, job: Job, work: Work) -> Literal["go on", "cancel", "lost", "no answer"]:
        """What the queue says of a job that the worker has."""
        try:
            goes_on = self._jobs.renew(job.id, self.name, work.progress())
        except DatabaseUnavailable as error:
            LOG.warning("job %s: %s", job.id, error)
            return "no answer"
        if goes_on is None:
            return "lost"
        return "go on" if goes_on else "cancel"

    def _finish(self, job: Job, ended: Ended) -> None:
        """Say how a job ended, until the queue hears it or another worker has the job."""
        until = time.monotonic() + self._let_go_s
        while True:
            try:
                self._jobs.finish(job.id, self.name, ended.status, error=ended.error, result=ended.result)
            except DatabaseUnavailable as error:
                LOG.warning("job %s: %s", job.id, error)
                if time.monotonic() > until or self._stopping.wait(LOOK_S):
                    return
            else:
                LOG.info("job %s: %s%s", job.id, ended.status, f": {ended.error}" if ended.error else "")
                return


def _stepped(job: Job, work: Work) -> Ended | None:
    """How the work ended, if it has; what it could not write down it tries again at the next look."""
    try:
        return work.step()
    except DatabaseUnavailable as error:
        LOG.warning("job %s: %s", job.id, error)
        return None


def _end_for_good(job: Job, work: Work) -> None:
    try:
        work.cancel()
    except Exception:
        LOG.exception("job %s: what was begun for it may go on", job.id)


def _failed(job: Job, error: Exception) -> Ended:
    """What is told of an error: of a bug that it is one, of the disk what it says without where."""
    if isinstance(error, TurnmillError):
        return Ended("failed", str(error))
    LOG.error("job %s", job.id, exc_info=error)
    if isinstance(error, OSError) and error.strerror:
        return Ended("failed", f"the worker cannot read or write what the job needs: {error.strerror}")
    return Ended("failed", "the worker met an error of its own; its log says which")
