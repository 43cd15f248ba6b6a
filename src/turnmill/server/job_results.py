"""What a job left, over REST: its files, what its rows came to, its curve, the answers of a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import PurePosixPath
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote as url_quote

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query
from fastapi import Path as InPath
from fastapi.responses import Response, StreamingResponse

from turnmill.errors import StaleError, UsageError
from turnmill.server.job_answers import (
    AuditAnswer,
    AuditAnswers,
    JobFiles,
    JobMetrics,
    PreparedManifest,
    SelectionAgainstControl,
)
from turnmill.server.jobs import TheId, found_job
from turnmill.server.problems import Problem
from turnmill.server.service import Service, TheService
from turnmill.server.written import Written
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.job_results import Line, against_control, answers, curve, left_files, opened_file, prepared_facts
from turnmill.shelf.jobs import ENDED

router = APIRouter(prefix="/jobs", tags=["jobs"])
CHUNK_BYTES = 1 << 18
MAX_FILES, MAX_METRICS, MAX_ANSWERS = 1000, 10_000, 200
"""Of one answer."""
Byte = Annotated[int, Query(ge=0, le=1 << 50, description="`next` of the page before.")]
Only = Annotated[
    Literal["exact", "different", "unanswered"] | None,
    Query(description="Only answers that are the recorded one, that are another, or that did not come."),
]
FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {}}, "description": "The file's bytes."},
    404: {"description": "job-unknown, file-unknown"},
}
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "job-unknown"}}
PREPARED: dict[int | str, dict[str, Any]] = {
    404: {"description": "job-unknown, not-prepared"},
    409: {"description": "prepared-damaged"},
}
HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox", "Cache-Control": "no-cache"}
"""Of a file that somebody else wrote: no browser shows it as a page of this server."""


@router.get("/{job_id}/files", response_model=JobFiles, responses=UNKNOWN)
def files(
    service: TheService,
    job_id: TheId,
    after: Annotated[str | None, Query(max_length=1024, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_FILES)] = MAX_FILES,
) -> dict[str, Any]:
    """The files that came of a job, and the rows that it was given."""
    found = [one for one in left_files(folder_of(service, job_id)) if after is None or one.path > after]
    page = [{"path": one.path, "size_bytes": one.size_bytes} for one in found[:limit]]
    return {"files": page, "next": page[-1]["path"] if len(found) > limit else None}


@router.get("/{job_id}/files/{path:path}", response_class=StreamingResponse, responses=FILE)
async def file(
    service: TheService, job_id: TheId, path: Annotated[str, InPath(description="As `files` says it.")]
) -> StreamingResponse:
    """One of them, to be kept as a file; what commands wrote can name directories of the server."""
    opened = ExitStack()
    content, size = await run_sync(_opened, opened, service, job_id, path)
    name = url_quote(PurePosixPath(path).name, safe="")
    headers = {"Content-Length": str(size), "Content-Disposition": f"attachment; filename*=UTF-8''{name}", **HEADERS}
    return StreamingResponse(_chunks(opened, content, size), 200, headers, "application/octet-stream")


def _opened(opened: ExitStack, service: Service, job_id: str, path: str) -> tuple[BinaryIO, int]:
    try:
        content = opened.enter_context(opened_file(folder_of(service, job_id), path))
    except (OSError, UsageError):  # gone, a link out, or never one of them
        raise Problem(404, "file-unknown", "the job has left no file of that path") from None
    size = content.seek(0, 2)
    content.seek(0)
    return content, size


async def _chunks(opened: ExitStack, content: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """As many bytes as were told, whatever the file has become meanwhile."""
    with opened:
        while size > 0 and (chunk := await run_sync(content.read, min(CHUNK_BYTES, size))):
            size -= len(chunk)
            yield chunk


@router.get("/{job_id}/manifest", response_model=PreparedManifest, responses=PREPARED)
def manifest(service: TheService, job_id: TheId) -> dict[str, Any]:
    """What the prepared rows of a job come to: rows, codes and tokens, of each source, too."""
    with told():
        facts = prepared_facts(folder_of(service, job_id))
    if facts is None:
        raise not_prepared()
    return {**facts, "template": service.without_places(facts["template"])}


@router.get(
    "/{job_id}/selection",
    response_model=SelectionAgainstControl,
    responses={**PREPARED, 404: {"description": "job-unknown, not-prepared, no-control"}},
)
def selection(service: TheService, job_id: TheId) -> dict[str, Any]:
    """What a job's strategy chose, beside its control, as `turnmill compare OUT` says it."""
    strategy = found_job(service, job_id).options.get("strategy")
    folder = folder_of(service, job_id)
    with told():
        if prepared_facts(folder) is None:
            raise not_prepared()
        found = None if strategy is None else against_control(folder)
    if found is None:
        raise Problem(404, "no-control", "no strategy chose the job's rows, or one that has no control beside it")
    return {"strategy": strategy, **found}


@router.get("/{job_id}/metrics", response_model=JobMetrics, responses=UNKNOWN)
def metrics(
    service: TheService,
    job_id: TheId,
    after: Annotated[int, Query(ge=-1, le=1 << 50, description="Step; what is behind it comes.")] = -1,
    limit: Annotated[int, Query(ge=1, le=MAX_METRICS)] = MAX_METRICS,
) -> Response:
    """The curve of a training behind a step; whoever follows it asks for the last step once more: it can have grown."""
    ended = found_job(service, job_id).status in ENDED  # looked at first: then nothing comes behind the end
    page = curve(folder_of(service, job_id), after, limit)
    said = {"metrics": page.lines, "next": page.next, "is_whole": ended and page.next is None}
    return Response(Written.of(said).body, media_type="application/json")


@router.get(
    "/{job_id}/answers",
    response_model=AuditAnswers,
    responses={404: {"description": "job-unknown, no-answers"}},
)
def audit_answers(
    service: TheService,
    job_id: TheId,
    cursor: Byte = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_ANSWERS)] = 50,
    only: Only = None,
    contains: Annotated[str | None, Query(max_length=200, description="Text of the question or an answer.")] = None,
) -> Response:
    """The answers of an audit: what was asked, what the model says, what was recorded, and how near they are."""
    page = answers(folder_of(service, job_id), cursor, limit, lambda line: _is_wanted(line, only, contains))
    if page is None:
        detail = "the job has asked a model nothing yet; only audits that are done have answers"
        raise Problem(404, "no-answers", detail)
    kept = [{name: line.get(name) for name in AuditAnswer.model_fields} for line in page.lines]
    return Response(Written.of({"answers": kept, "next": page.next}).body, media_type="application/json")


def _is_wanted(line: Line, only: str | None, contains: str | None) -> bool:
    fault, exact = line.get("fault"), line.get("exact")
    state = "unanswered" if fault is not None else "exact" if exact == 1 else "different"
    if only is not None and state != only:
        return False
    texts = (line.get(name) or "" for name in ("asked", "recorded", "answer"))
    return contains is None or any(contains.casefold() in text.casefold() for text in texts)


def folder_of(service: Service, job_id: str) -> JobFolder:
    """The folder of a job that there is.

    Raises:
        Problem: 404.
    """
    return JobFolder(service.options.jobs / found_job(service, job_id).id)


def not_prepared() -> Problem:
    """That a job has no prepared rows."""
    return Problem(404, "not-prepared", "the job has no prepared rows here, or not yet")


@contextmanager
def told() -> Iterator[None]:
    """Says what is wrong with prepared rows as a problem.

    Raises:
        Problem: 409.
    """
    try:
        yield
    except StaleError as error:
        raise Problem(409, "prepared-damaged", error.message) from None
