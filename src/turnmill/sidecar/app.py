"""The service over HTTP: one job start, and what there is to know of runs. Datasets have no routes of their own."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote as url_quote

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from turnmill.sidecar.guard import Guard
from turnmill.sidecar.incoming import body_limit, spool
from turnmill.sidecar.job_schema import START_BODY
from turnmill.sidecar.problems import PROBLEM_RESPONSES, Refused, answer_problems
from turnmill.sidecar.reports import (
    MAX_METRICS,
    Artefact,
    LogPart,
    Metrics,
    RunStatus,
    artefacts_of,
    log_of,
    metrics_of,
    opened_artefact,
    progress_of,
)
from turnmill.sidecar.runs import Run
from turnmill.sidecar.service import Service, Settings

CHUNK_BYTES = 1 << 18
MAX_LISTED = 1_000
From = Annotated[int, Query(ge=0)]


def create_app(settings: Settings, secret: str | None = None, host: str = "127.0.0.1") -> FastAPI:
    """The app of a sidecar; its data directory is claimed here, and worked on while the app lives.

    Args:
        settings: of the sidecar.
        secret: that requests bring; None: none is needed.
        host: that it is bound to.

    Raises:
        UsageError: the data directory is another sidecar's, or cannot be written.
    """
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.open()
        try:
            yield
        finally:
            await run_in_threadpool(service.close)

    app = FastAPI(
        title="turnmill sidecar", docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan,
        responses=PROBLEM_RESPONSES,
    )  # fmt: skip
    app.include_router(_health(service))
    app.include_router(_starts(service))
    app.include_router(_jobs(service))
    app.include_router(_results(service))
    answer_problems(app)
    app.add_middleware(Guard, secret=secret, host=host)
    return app


def _health(service: Service) -> APIRouter:
    router = APIRouter()

    @router.get("/healthz")
    async def is_alive() -> dict[str, str]:
        """Whether the process answers; needs no secret."""
        return {"status": "ok"}

    @router.get("/readyz")
    def is_ready() -> dict[str, Any]:
        """Whether it takes jobs and works on them."""
        if not service.crew.is_at_work:
            raise Refused(503, "not-at-work", "no run is begun now", headers={"Retry-After": "1"})
        return {"status": "ready", "models": list(service.settings.models), "max_bytes": service.settings.max_bytes}

    return router


def _starts(service: Service) -> APIRouter:
    router = APIRouter()
    limit = body_limit(service.settings.max_bytes)

    @router.post(
        "/training/job_start", status_code=201, response_model=RunStatus, openapi_extra={"requestBody": START_BODY}
    )
    async def start(request: Request) -> Response:
        """Store the dataset that came along, then begin a run of it; 200 where the job's run is there already."""
        try:
            with tempfile.TemporaryFile(dir=service.drafts) as body:
                await spool(request, body, limit)
                run, is_new = await run_in_threadpool(service.start, body)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except OSError as problem:
            what = f"the sidecar's disk does not take it: {problem.strerror}"
            raise Refused(507, "storage-refused", what) from problem
        said = _status(service, run).model_dump(mode="json")
        return JSONResponse(said, 201 if is_new else 200, {"Location": f"/training/jobs/{run.id}"})

    return router


def _jobs(service: Service) -> APIRouter:
    router = APIRouter(prefix="/training/jobs")

    @router.get("")
    def every(limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 100) -> dict[str, list[RunStatus]]:
        """The latest runs, the last one first."""
        return {"jobs": [_status(service, run) for run in service.runs.all()[:limit]]}

    @router.get("/{number}")
    def one(number: str) -> RunStatus:
        """A run, and how far it is."""
        return _status(service, service.run(number))

    @router.post("/{number}/cancel")
    def cancel(number: str) -> RunStatus:
        """Have a run end: at once where it waits, else behind its step, or within seconds."""
        return _status(service, service.cancel(number))

    return router


def _results(service: Service) -> APIRouter:
    router = APIRouter(prefix="/training/jobs/{number}")

    @router.get("/metrics")
    def metrics(
        number: str,
        after: Annotated[int, Query(ge=-1)] = -1,
        limit: Annotated[int, Query(ge=1, le=MAX_METRICS)] = MAX_METRICS,
    ) -> Metrics:
        """Losses and evaluations behind a step."""
        return metrics_of(_folder(service, number), after, limit)

    @router.get("/log")
    def log(number: str, offset: From = 0) -> LogPart:
        """What the run's commands said, from a byte on."""
        return log_of(_folder(service, number), offset)

    @router.get("/artefacts")
    def artefacts(number: str) -> dict[str, list[Artefact]]:
        """The files of the trained model, once it is published."""
        return {"artefacts": artefacts_of(_folder(service, number))}

    @router.get("/artefacts/{path:path}", response_class=StreamingResponse)
    def artefact(number: str, path: str) -> StreamingResponse:
        """One of them."""
        opened = ExitStack()
        found, file = opened.enter_context(opened_artefact(_folder(service, number), path))
        headers = {
            "Content-Length": str(found.size_bytes),
            "ETag": f'"{found.sha256}"',
            "Content-Disposition": f"attachment; filename*=UTF-8''{url_quote(Path(found.path).name)}",
            "X-Content-Type-Options": "nosniff",
        }
        return StreamingResponse(_chunks(opened, file), 200, headers, "application/octet-stream")

    return router


def _folder(service: Service, number: str) -> Path:
    return service.runs.of(service.run(number).id)


def _status(service: Service, run: Run) -> RunStatus:
    return RunStatus(**run.facts(), progress=progress_of(service.runs.of(run.id)))


def _chunks(opened: ExitStack, file: BinaryIO) -> Iterator[bytes]:
    with opened:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
