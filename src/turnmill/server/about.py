"""What a server is, what it can be asked for, and how it fares: for who shows it to people."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from typing import Literal

from anyio import move_on_after
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from pydantic import Field

from turnmill.exporters import exporters
from turnmill.models import own_templates
from turnmill.repairs import repairs
from turnmill.server.answers import Answer
from turnmill.server.guard import ANYBODY
from turnmill.server.jobs import MAX_STREAMS
from turnmill.server.registry import Registry, TheRegistry
from turnmill.server.service import Service, TheService
from turnmill.shelf.carry import SidecarRefused
from turnmill.shelf.jobs import KINDS, Jobs

router = APIRouter(prefix="/about", tags=["about"])
SIDECAR_S = 2.0
"""How long a sidecar has to say that it takes jobs."""

SidecarState = Literal["none", "ready", "down", "refuses"]


class TokenInUse(Answer):
    """The access token that asks."""

    name: str
    scope: Literal["read", "write", "admin"]
    expires_at: datetime | None = Field(description="Null: never.")


class Limits(Answer):
    """What the server takes."""

    max_bytes: int = Field(description="Of a data file.")
    max_body_bytes: int = Field(description="Of any other request.")
    max_uploads: int = Field(description="At once.")
    max_streams: int = Field(description="Clients that follow events at once.")


class About(Answer):
    """What a server is and what can be asked of it."""

    version: str
    read_only: bool = Field(description="Whatever changes anything is refused.")
    models: list[str] = Field(description="Names that jobs and `explain` can say.")
    templates: list[str] = Field(description="turnmill's own chat templates.")
    exporters: list[str] = Field(description="What an `export` job can write for.")
    repairs: list[str] = Field(description="What a replay of rows that left can name.")
    job_kinds: list[str]
    needs_token: bool = Field(description="Whether nothing opens without an access token; false: none was ever made.")
    scope: Literal["read", "write", "admin"] = Field(description="What whoever asks may do.")
    token: TokenInUse | None = Field(description="That asks; null where none is needed.")
    limits: Limits
    database: Literal["sqlite", "postgresql"]
    has_sidecar: bool = Field(description="Whether the server was told of a sidecar, which trains.")


class QueueState(Answer):
    """The jobs that have not ended, and what is known of the workers."""

    queued: int
    running: int
    lost: int = Field(description="Running jobs whose worker has said nothing for its whole lease.")
    workers: int = Field(description="Workers that have a job now; idle ones are not known.")
    waiting_since: datetime | None = Field(description="When the oldest queued job was made.")
    last_taken_at: datetime | None = Field(description="When a worker last began a job; null: never.")


class Health(Answer):
    """How a server fares; that its database answers is plain from there being an answer."""

    shelf: Literal["ok", "not-there-yet", "not-readable"]
    sidecar: SidecarState = Field(description="none: the server was told of none.")
    queue: QueueState
    free_bytes: int | None = Field(description="On the disk of the jobs' folders.")


@router.get("")
async def about(request: Request, service: TheService) -> About:
    """What this server is, what jobs and requests can name, and what the token that asks may do."""
    options, grant = service.options, request.state.grant
    needed = grant is not ANYBODY
    token = TokenInUse(name=grant.name, scope=grant.scope, expires_at=grant.expires_at) if needed else None
    limits = Limits(
        max_bytes=options.max_bytes, max_body_bytes=options.max_body_bytes,
        max_uploads=options.max_uploads, max_streams=MAX_STREAMS,
    )  # fmt: skip
    return About(
        version=version("turnmill"), read_only=options.read_only, models=sorted(options.models),
        templates=own_templates(), exporters=exporters.names(), repairs=repairs.names(), job_kinds=list(KINDS),
        needs_token=needed, scope=grant.scope, token=token, limits=limits,
        database="sqlite" if service.database.is_sqlite else "postgresql", has_sidecar=options.sidecar is not None,
    )  # fmt: skip


@router.get("/health")
async def health(service: TheService, registry: TheRegistry) -> Health:
    """Whether the shelf can be read, the sidecar takes jobs, and workers take them; answers within seconds."""
    queue = await run_sync(Jobs(service.database).state)
    return Health(
        shelf=await run_sync(_shelf_state, service),
        sidecar=await _sidecar_state(registry),
        queue=QueueState(**queue),
        free_bytes=await run_sync(_free_bytes, service),
    )


def _shelf_state(service: Service) -> Literal["ok", "not-there-yet", "not-readable"]:
    try:
        with os.scandir(service.shelf.directory):
            return "ok"
    except FileNotFoundError:
        return "not-there-yet"
    except OSError:
        return "not-readable"


async def _sidecar_state(registry: Registry) -> SidecarState:
    """Asked once, and not waited for longer than a person does."""
    carrier = registry.service.options.sidecar
    if carrier is None:
        return "none"
    with move_on_after(SIDECAR_S):
        try:
            is_ready = await run_sync(carrier.is_ready, abandon_on_cancel=True, limiter=registry.sidecar_askers)
        except SidecarRefused:
            return "refuses"
        return "ready" if is_ready else "down"
    return "down"


def _free_bytes(service: Service) -> int | None:
    for place in (service.options.jobs, service.options.jobs.parent):
        with suppress(OSError):
            return shutil.disk_usage(place).free
    return None
