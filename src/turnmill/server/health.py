"""Whether the server lives, can do its work, and what it has done."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from turnmill.server.service import TheService

router = APIRouter(tags=["health"])


@router.get("/healthz")
def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(service: TheService) -> dict[str, str]:
    """The database answers, too, and the shelf can be read."""
    service.database.ping()
    service.shelf.directory.exists()
    return {"status": "ok"}


@router.get("/metrics", response_class=Response)
def metrics(service: TheService) -> Response:
    """Counts and times for Prometheus."""
    return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)
