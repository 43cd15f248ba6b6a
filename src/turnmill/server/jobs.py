"""Jobs over REST: started, listed, followed, cancelled."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Header, Query
from fastapi import Path as InPath
from fastapi import Request as HttpRequest
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ConfigDict

from turnmill.errors import UnknownName, UsageError
from turnmill.server.problems import Problem, problems
from turnmill.server.service import Service, TheService
from turnmill.shelf.database import DatabaseUnavailable
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.job_options import JobId, Name, Request
from turnmill.shelf.job_start import asked_like, start_job
from turnmill.shelf.jobs import ENDED, Jobs, KeyUsedBefore
from turnmill.shelf.scan import Listing
from turnmill.shelf.tables import Job, JobEvent

router = APIRouter(prefix="/jobs", tags=["jobs"])
LOOK_S = 0.5
"""How often a job that is followed is looked at."""
MAX_STREAMS = 100
"""Of events, at once."""
MAX_LOG_BYTES = 1 << 20
"""Of one answer."""
Key = Annotated[str | None, Header(pattern="^[ -~]{1,128}$")]
Kind = Literal["prepare", "train", "evaluate", "audit", "export"]
Status = Literal["queued", "running", "done", "failed", "cancelled"]
TheId = Annotated[JobId, InPath(description="Of the job.")]


class JobListed(BaseModel):
    """A job, without what came of it."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    kind: str
    dataset: str
    filename: str
    sha256: str
    options: dict[str, Any]
    status: str
    attempt: int
    cancel_requested: bool
    progress: dict[str, Any]
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobSaid(JobListed):
    """A job."""

    result: dict[str, Any]
    """What its last command answered; paths are relative to the job's folder."""


class JobsSaid(BaseModel):
    """Jobs, the newest first."""

    jobs: list[JobListed]
    next: str | None
    """What to give as `before` for the next page; null: this was the last one."""


class LogSaid(BaseModel):
    """A piece of a log."""

    text: str
    next_offset: int
    """Where the next piece begins."""
    is_whole: bool
    """Whether the job has ended and nothing comes behind this."""


@router.post("", status_code=201, responses=problems(400, 409, 507))
def start(
    service: TheService,
    asked: Request,
    idempotency_key: Key = None,
) -> JobSaid:
    """Start a job on a dataset of the shelf, which is taken along as it is now.

    The body names the dataset and options; content cannot be sent. With an `Idempotency-Key`, a request that is
    sent again gives the job of the first one.
    """
    return _started(service, asked, idempotency_key)


def _started(service: Service, asked: Any, key: str | None) -> JobSaid:
    options = service.options
    try:
        with _kept():
            job = start_job(asked, lambda: _listing(service), service.database, options.jobs, options.models, key)
    except KeyUsedBefore as error:
        raise Problem(409, "key-used-before", str(error)) from None
    return _said(service, job)


def _listing(service: Service) -> Listing:
    try:
        return service.shelf.listing()
    except UsageError:
        raise Problem(503, "shelf-not-readable", "the directory of the datasets cannot be read") from None


@contextmanager
def _kept() -> Iterator[None]:
    """Says what the disk refuses as a problem.

    Raises:
        Problem: 507.
    """
    try:
        yield
    except (OSError, UsageError) as error:
        refusal = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(refusal, OSError):
            raise
        raise Problem(507, "not-stored", f"the server cannot keep the job's data: {refusal.strerror}") from error


@router.get("", responses=problems(400, 404))
def listed(
    service: TheService,
    before: Annotated[JobId | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    kind: Annotated[Kind | None, Query(description="Only jobs of this kind.")] = None,
    status: Annotated[Status | None, Query(description="Only jobs that stand so.")] = None,
    dataset: Annotated[Name | None, Query(description="Only jobs on this dataset.")] = None,
) -> JobsSaid:
    """Jobs, the newest first."""
    jobs = Jobs(service.database)
    wanted = {"kind": kind, "status": status, "dataset": dataset}
    try:
        found = jobs.newest(before, limit + 1, {name: value for name, value in wanted.items() if value is not None})
    except UnknownName as error:
        raise _unknown(error) from None
    page = [_listed(service, job) for job in found[:limit]]
    return JobsSaid(jobs=page, next=page[-1].id if len(found) > limit else None)


@router.get("/{job_id}", responses=problems(400, 404))
def show(service: TheService, job_id: TheId) -> JobSaid:
    """One job."""
    return _said(service, found_job(service, job_id))


@router.post("/{job_id}/cancel", responses=problems(400, 404))
def cancel(service: TheService, job_id: TheId) -> JobSaid:
    """Ask for the end of a job; one that has ended stays as it is."""
    try:
        return _said(service, Jobs(service.database).cancel(job_id))
    except UnknownName as error:
        raise _unknown(error) from None


@router.post("/{job_id}/retry", status_code=201, responses=problems(400, 404, 409, 507))
def retry(service: TheService, job_id: TheId, idempotency_key: Key = None) -> JobSaid:
    """Start a job with the options of this one, on the dataset as it is now; this one stays as it is."""
    return _started(service, asked_like(found_job(service, job_id)), idempotency_key)


@router.get("/{job_id}/log", responses=problems(400, 404))
def log(service: TheService, job_id: TheId, offset: Annotated[int, Query(ge=0, le=1 << 50)] = 0) -> LogSaid:
    """What the job's commands said, from a byte on; a megabyte at most."""
    ended = found_job(service, job_id).status in ENDED
    piece = piece_of(JobFolder(service.options.jobs / job_id).log, offset, ended=ended)
    return piece.model_copy(update={"text": service.without_places(piece.text)})


def _the_job(service: TheService, job_id: TheId) -> Job:
    """The job, looked for before the stream of its events begins."""
    return found_job(service, job_id)


async def _one_of_many(service: TheService) -> AsyncIterator[None]:
    """One of the streams that are kept up at once, each of which asks the database twice a second."""
    if service.streams.count >= MAX_STREAMS:
        detail = f"{MAX_STREAMS} streams of events are open already"
        raise Problem(503, "too-many-streams", detail, headers={"Retry-After": "5"})
    service.streams.count += 1
    try:
        yield
    finally:
        service.streams.count -= 1


@router.get(
    "/{job_id}/events",
    response_class=EventSourceResponse,
    responses=problems(400, 404),
    dependencies=[Depends(_one_of_many)],
)
async def events(
    request: HttpRequest,
    service: TheService,
    job_id: TheId,
    _: Annotated[Job, Depends(_the_job)],
    last_event_id: Annotated[str, Header(pattern=r"^[0-9]{0,9}$")] = "",
    after: Annotated[int, Query(ge=0, le=999_999_999)] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """What happens to a job, as server-sent events: all that happened so far, then the rest as it comes.

    Each has its number as id; a client that comes back sends the last one as `Last-Event-ID`. The stream ends
    with the job, or with the token that opened it.
    """
    seen = max(after, int(last_event_id or 0))
    while True:
        with suppress(DatabaseUnavailable):  # it may be back at the next look
            if not await request.state.is_open():
                return
            job = await run_sync(found_job, service, job_id)
            for event in await run_sync(Jobs(service.database).events, job_id, seen):
                seen = event.number
                yield _sent(service, event)
            if job.status in ENDED:
                return
        await asyncio.sleep(LOOK_S)


def _sent(service: Service, event: JobEvent) -> ServerSentEvent:
    data = {**service.without_places(event.data), "at": event.at.isoformat()}
    return ServerSentEvent(data=data, event=event.kind, id=str(event.number))


def _said(service: Service, job: Job) -> JobSaid:
    """The job; what commands said of the server's directories is told by what they are for."""
    said = JobSaid.model_validate(job)
    hidden = {"error": service.without_places(said.error), "result": service.without_places(said.result)}
    return said.model_copy(update=hidden)


def _listed(service: Service, job: Job) -> JobListed:
    said = JobListed.model_validate(job)
    return said.model_copy(update={"error": service.without_places(said.error)})


def found_job(service: Service, job_id: str) -> Job:
    """A job as it is now.

    Raises:
        Problem: 404.
    """
    try:
        return Jobs(service.database).get(job_id)
    except UnknownName as error:
        raise _unknown(error) from None


def _unknown(error: UnknownName) -> Problem:
    return Problem(404, "job-unknown", str(error))


def piece_of(path: Path, offset: int, *, ended: bool) -> LogSaid:
    """A piece of a log, which may not be there yet.

    Args:
        path: of the log.
        offset: where the piece begins.
        ended: whether the job had ended before: then nothing comes behind the end.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            content = file.read(MAX_LOG_BYTES)
            whole = not file.read(1)
    except FileNotFoundError:
        content, whole = b"", True
    is_last = ended and whole
    text, taken = codecs.utf_8_decode(content, "replace", is_last)  # a character that is cut comes with the next piece
    return LogSaid(text=text, next_offset=offset + taken, is_whole=is_last)
