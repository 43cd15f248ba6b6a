"""Whether the server lives, can do its work, and what it has done."""

from __future__ import annotations

import os
from contextlib import suppress

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from turnmill.server.problems import Problem
from turnmill.server.service import TheService

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(service: TheService) -> dict[str, str]:
    """The database answers, too, and the shelf can be read; one that is not there yet is an empty one."""
    service.database.ping()
    try:
        with suppress(FileNotFoundError), os.scandir(service.shelf.directory):
            pass
    except OSError:
        raise Problem(503, "shelf-not-readable", "the directory of the datasets cannot be read") from None
    return {"status": "ok"}


@router.get("/metrics", response_class=Response)
def metrics(service: TheService) -> Response:
    """Counts and times for Prometheus."""
    return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)
