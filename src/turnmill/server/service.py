"""What the routes of one server share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, cast

from fastapi import Depends, Request

from turnmill.server.metrics import Metrics
from turnmill.shelf.content import MAX_BYTES
from turnmill.shelf.database import Database
from turnmill.shelf.scan import Shelf


@dataclass(frozen=True, slots=True)
class Serve:
    """How a shelf is served."""

    api_prefix: str = "/v1"
    """What every path of the interface begins with."""
    read_only: bool = False
    """Refuse whatever changes anything."""
    models: Mapping[str, Path] = field(default_factory=dict)
    """Name → directory of a model: the only ones that requests and jobs can name."""
    jobs: Path = Path("jobs")
    """Where the folders of jobs are; the workers see it, too."""
    allowed_hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """What the `Host` header may be, whatever the port; empty: anything."""
    max_bytes: int = MAX_BYTES
    """Of a data file."""
    max_body_bytes: int = 1 << 20
    """Of any other request."""
    max_uploads: int = 8
    """That are taken at once."""


@dataclass(frozen=True, slots=True)
class Service:
    """The shelf, its database, and how they are served."""

    shelf: Shelf
    database: Database
    options: Serve
    metrics: Metrics = field(default_factory=Metrics)
    other_databases: Mapping[str, Database] = field(default_factory=dict)
    """Name → a database that has no datasets."""


async def _of(request: Request) -> Service:  # async: on the loop, for it waits for nothing
    return cast("Service", request.app.state.service)


TheService = Annotated[Service, Depends(_of)]
"""A parameter of a route: what the routes share."""
