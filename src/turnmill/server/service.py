"""What the routes of one server share."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import Depends, Request

from turnmill.server.metrics import Metrics
from turnmill.shelf.carry import Carrier
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
    sidecar: Carrier | None = None
    """Speaks to the service that `train` jobs are carried to; here it is only asked whether it takes jobs."""


@dataclass(slots=True)
class Streams:
    """The answers that go on until a job has ended."""

    count: int = 0


@dataclass(frozen=True)
class Service:
    """The shelf, its database, and how they are served."""

    shelf: Shelf
    database: Database
    options: Serve
    metrics: Metrics = field(default_factory=Metrics)
    other_databases: Mapping[str, Database] = field(default_factory=dict)
    """Name → a database that has no datasets."""
    streams: Streams = field(default_factory=Streams)

    def without_places(self, said: Any) -> Any:
        """What is said, with the server's own directories told by what they are for; lists and objects, too."""
        if isinstance(said, str):
            pattern, names = self._places
            return pattern.sub(lambda found: names[found[0]], said)
        if isinstance(said, list):
            return [self.without_places(each) for each in said]
        if isinstance(said, dict):
            return {key: self.without_places(value) for key, value in said.items()}
        return said

    @cached_property
    def _places(self) -> tuple[re.Pattern[str], dict[str, str]]:
        """What finds the directories in a text, those that lie in others first, and their names."""
        named = {self.shelf.directory: "SHELF", self.options.jobs: "JOBS", Path(tempfile.gettempdir()): "TEMPORARY"}
        if self.database.is_sqlite and self.database.url.database:
            named.setdefault(Path(self.database.url.database).parent, "DATABASE")
        named |= {folder: name for name, folder in self.options.models.items()}
        names = {str(way(place)): name for place, name in named.items() for way in (Path.absolute, Path.resolve)}
        places = "|".join(re.escape(place) for place in sorted(names, key=len, reverse=True) if len(place) > 1)
        return re.compile(rf"(?<![\w./-])(?:{places})(?![\w-])"), names


async def _of(request: Request) -> Service:  # async: on the loop, for it waits for nothing
    return cast("Service", request.app.state.service)


TheService = Annotated[Service, Depends(_of)]
"""A parameter of a route: what the routes share."""
