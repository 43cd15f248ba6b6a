"""The queue of jobs in a shelf's database: made, taken by one worker at a time, followed, cancelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import and_, distinct, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from turnmill.errors import UnknownName, UsageError, quote
from turnmill.shelf.database import Database
from turnmill.shelf.tables import Job, JobEvent, now

KINDS = ("prepare", "train", "evaluate", "audit", "export")
ENDED = frozenset({"done", "failed", "cancelled"})
"""What a job stays."""
LEASE = timedelta(seconds=30)
"""How long a worker has a job without saying that it still does."""
MAX_ATTEMPTS = 3
"""Workers that may be lost with a job before it counts as the cause."""
NEWEST = 100
"""Jobs of a page."""


class KeyUsedBefore(UsageError):
    """An idempotency key that another job was made with."""


class Jobs:
    """The jobs of one database.

    Args:
        database: where they are kept.
        lease: how long a worker that says nothing keeps a job.
    """

    def __init__(self, database: Database, lease: timedelta = LEASE) -> None:
        self._database = database
        self.lease = lease

    def add(self, job: Job) -> Job:
        """Put a job into the queue; of two with one idempotency key the first one is given.

        Raises:
            KeyUsedBefore: the key was given with another job.
        """
        try:
            with self._database.writing() as session:
                session.add(job)
                session.flush()
                _note(session, job, "status", {"status": "queued"})
        except IntegrityError:
            found = self.made_before(job)
            if found is None:
                raise
            return found
        return job

    def made_before(self, job: Job) -> Job | None:
        """The job that was made with the idempotency key of this one; None where it has none, or there is none.

        Raises:
            KeyUsedBefore: the key was given with another job.
        """
        if job.idempotency_key is None:
            return None
        with self._database.reading() as session:
            found = session.scalar(select(Job).where(Job.idempotency_key == job.idempotency_key))
        if found is None:
            return None
        if (found.kind, found.dataset, found.options) != (job.kind, job.dataset, job.options):
            raise KeyUsedBefore(f"the key {quote(job.idempotency_key)} was given with another job")
        return found

    def get(self, job_id: str) -> Job:
        """A job as it is now.

        Raises:
            UnknownName: there is none of that id.
        """
        with self._database.reading() as session:
            return _found(session, job_id)

    def newest(
        self, before: str | None = None, limit: int = NEWEST, wanted: Mapping[str, str] | None = None
    ) -> Sequence[Job]:
        """Jobs, the newest first.

        Args:
            before: id of the job whose page ended; None: from the newest on.
            limit: at most so many.
            wanted: `kind`, `status` or `dataset` → what it must be.

        Raises:
            UnknownName: no job has the id `before`.
        """
        query = select(Job).filter_by(**(wanted or {})).order_by(Job.created_at.desc(), Job.id.desc()).limit(limit)
        with self._database.reading() as session:
            if before is not None:
                last = _found(session, before)
                earlier = and_(Job.created_at == last.created_at, Job.id < last.id)
                query = query.where(or_(Job.created_at < last.created_at, earlier))
            return session.scalars(query).all()

    def state(self) -> dict[str, Any]:
        """How many jobs wait and run, how many workers have one, and since when nobody took any."""
        with self._database.reading() as session:
            counted = session.execute(select(Job.status, func.count()).group_by(Job.status))
            counts: dict[str, int] = {row[0]: row[1] for row in counted}
            leased = and_(Job.status == "running", Job.leased_until >= now())
            held, workers = session.execute(
                select(func.count(), func.count(distinct(Job.leased_by))).where(leased)
            ).one()
            oldest = session.scalar(select(func.min(Job.created_at)).where(Job.status == "queued"))
            taken = session.scalar(select(func.max(Job.started_at)))
        running = counts.get("running", 0)
        return {
            "queued": counts.get("queued", 0), "running": running, "lost": max(0, running - held),
            "workers": workers, "waiting_since": oldest, "last_taken_at": taken,
        }  # fmt: skip

    def events(self, job_id: str, after: int = 0) -> Sequence[JobEvent]:
        """What happened to a job after the event of that number."""
        query = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.number > after).order_by(JobEvent.number)
        with self._database.reading() as session:
            return session.scalars(query).all()

    def cancel(self, job_id: str) -> Job:
        """Ask for the end of a job: one that no worker has ends at once, one that has ended stays as it is.

        Raises:
            UnknownName: there is none of that id.
        """
        with self._database.writing() as session:
            job = _found(session, job_id, is_changed=True)
            if job.status == "queued":
                _end(session, job, "cancelled")
            elif job.status == "running" and not job.cancel_requested:
                job.cancel_requested = True
                _note(session, job, "status", {"status": "running", "cancel_requested": True})
            return job

    def take(self, worker: str) -> Job | None:
        """The oldest job that nobody has, now the worker's; None where there is none.

        A job whose worker has said nothing for the lease is taken over; after `MAX_ATTEMPTS` of them it has failed.

        Args:
            worker: a name that no other process has, not even a later one of the same worker.
        """
        time = now()
        is_lost = and_(Job.status == "running", Job.leased_until < time)
        free = or_(Job.status == "queued", is_lost)
        oldest = select(Job).where(free).order_by(Job.created_at, Job.id).limit(1).with_for_update(skip_locked=True)
        if not self._has_any(free):
            return None
        with self._database.writing() as session:
            while (job := session.scalar(oldest)) is not None:
                if job.cancel_requested:
                    _end(session, job, "cancelled")
                elif job.attempt >= MAX_ATTEMPTS:
                    _end(session, job, "failed", f"{job.attempt} workers were lost while they had it")
                else:
                    self._lease_to(session, job, worker)
                    return job
                session.flush()
        return None

    def _has_any(self, free: Any) -> bool:
        """Looked at first as a reader: a queue that is empty must not be locked at every look."""
        with self._database.reading() as session:
            return session.scalar(select(Job.id).where(free).limit(1)) is not None

    def _lease_to(self, session: Session, job: Job, worker: str) -> None:
        job.status, job.leased_by, job.leased_until = "running", worker, now() + self.lease
        job.attempt += 1
        job.started_at = job.started_at or now()
        _note(session, job, "status", {"status": "running", "attempt": job.attempt})

    def renew(self, job_id: str, worker: str, progress: dict[str, Any] | None = None) -> bool | None:
        """Say that the worker still has the job.

        Args:
            job_id: of the job.
            worker: that had taken it.
            progress: how far it is, where that is known.

        Returns:
            Whether to go on; None where the worker has it no more.
        """
        with self._database.writing() as session:
            job = _held(session, job_id, worker)
            if job is None:
                return None
            job.leased_until = now() + self.lease
            if progress is not None and progress != job.progress:
                job.progress = progress
                _note(session, job, "progress", progress)
            return not job.cancel_requested

    def finish(
        self, job_id: str, worker: str, status: str, *, error: str | None = None, result: dict[str, Any] | None = None
    ) -> bool:
        """Say how a job ended.

        Args:
            job_id: of the job.
            worker: that has it.
            status: `done`, `failed` or `cancelled`.
            error: what was wrong.
            result: what came of it.

        Returns:
            Whether that counts: not where another worker has it.
        """
        with self._database.writing() as session:
            job = _held(session, job_id, worker)
            if job is None:
                return False
            job.result = result or {}
            _end(session, job, status, error)
            return True

    def give_back(self, job_id: str, worker: str) -> None:
        """Put a job back that a worker which stops had begun; it does not count as an attempt."""
        with self._database.writing() as session:
            job = _held(session, job_id, worker)
            if job is not None:
                job.status, job.leased_by, job.leased_until = "queued", None, None
                job.attempt -= 1
                _note(session, job, "status", {"status": "queued"})


def _found(session: Session, job_id: str, *, is_changed: bool = False) -> Job:
    job = session.get(Job, job_id, with_for_update=is_changed or None)
    if job is None:
        raise UnknownName("job", job_id, [], next_step="turnmill job list")
    return job


def _held(session: Session, job_id: str, worker: str) -> Job | None:
    """The job, where the worker has it."""
    held = and_(Job.id == job_id, Job.status == "running", Job.leased_by == worker)
    return session.scalar(select(Job).where(held).with_for_update())


def _end(session: Session, job: Job, status: str, error: str | None = None) -> None:
    error = None if error is None else error.replace("\x00", "\\x00")  # PostgreSQL has no such character in texts
    job.status, job.error, job.finished_at = status, error, now()
    job.leased_by, job.leased_until = None, None
    _note(session, job, "status", {"status": status} | ({"error": error} if error else {}))


def _note(session: Session, job: Job, kind: str, data: dict[str, Any]) -> None:
    """Write an event; the job's row is this transaction's, so that no other takes the number."""
    last = session.scalar(select(func.max(JobEvent.number)).where(JobEvent.job_id == job.id)) or 0
    session.add(JobEvent(job_id=job.id, number=last + 1, kind=kind, data=data))
    session.flush()
