"""What the routes of datasets share beside the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, cast

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Query, Request

from turnmill.errors import TurnmillError
from turnmill.server.listings import Listings
from turnmill.server.problems import Problem
from turnmill.server.service import Service
from turnmill.server.written import Remembered
from turnmill.shelf.records import Records
from turnmill.shelf.scan import Dataset
from turnmill.shelf.unusable import unusable_dataset
from turnmill.shelf.upload import Incoming

RETRY_AFTER_S = 5
MAX_ROW_READERS = 2
"""So many requests read whole files at once; others wait, so that listings are still answered."""
MAX_PAGE_READERS = 4
"""As much for those that read a page of rows, which need not wait for whole files."""
MAX_SIDECAR_ASKERS = 2


class Registry:
    """The datasets of one server.

    Attributes:
        service: the shelf, its database, and how they are served.
        records: of the datasets.
        listings: of the shelf.
        remembered: answers that were made of files.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.records = Records(service.database)
        self.listings = Listings(service.shelf, self.records)
        self.remembered = Remembered()
        self._uploads = 0
        self._row_readers: CapacityLimiter | None = None
        self._page_readers: CapacityLimiter | None = None
        self._sidecar_askers: CapacityLimiter | None = None
        self._scorers: CapacityLimiter | None = None

    async def readable(self, name: str) -> Dataset:
        """The dataset of that name, or the directory that is a problem, where its rows can be looked at.

        Raises:
            Problem: 404.
        """
        listed = await self.listings.current()
        is_dataset = any(one.manifest.name == name for one in listed.listing.datasets)
        if not is_dataset and any(one.dir == name for one in listed.listing.problems):
            with suppress(TurnmillError, OSError):
                return await run_sync(unusable_dataset, self.service.shelf, name, limiter=self.page_readers)
        return listed.dataset(name)

    @property
    def row_readers(self) -> CapacityLimiter:
        """Lets a few threads read whole files."""
        if self._row_readers is None:  # made where a loop runs
            self._row_readers = CapacityLimiter(MAX_ROW_READERS)
        return self._row_readers

    @property
    def page_readers(self) -> CapacityLimiter:
        """Lets a few threads read pages of rows."""
        if self._page_readers is None:
            self._page_readers = CapacityLimiter(MAX_PAGE_READERS)
        return self._page_readers

    @property
    def sidecar_askers(self) -> CapacityLimiter:
        """Lets a few threads wait for a sidecar, which may take longer than whoever asked."""
        if self._sidecar_askers is None:
            self._sidecar_askers = CapacityLimiter(MAX_SIDECAR_ASKERS)
        return self._sidecar_askers

    @property
    def scorers(self) -> CapacityLimiter:
        """Lets one request at a time have a model loaded."""
        if self._scorers is None:
            self._scorers = CapacityLimiter(1)
        return self._scorers

    @contextmanager
    def uploading(self) -> Iterator[None]:
        """One of the uploads that are taken at once.

        Raises:
            Problem: 503: there are as many already.
        """
        if self._uploads >= self.service.options.max_uploads:
            detail = f"{self._uploads} uploads are under way; this one was not begun"
            raise Problem(503, "too-many-uploads", detail, headers={"Retry-After": str(RETRY_AFTER_S)})
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    def incoming(self) -> Incoming:
        """Takes a file for the shelf.

        Raises:
            OSError: the disk refuses.
        """
        return Incoming(self.service.shelf.directory, self.service.options.max_bytes)

    def require_main(self, name: str | None) -> None:
        """Refuse a database that has no datasets.

        Raises:
            Problem: 400 for another database, 404 where there is none of that name.
        """
        if not self.require_database(name):
            raise Problem(400, "request-not-valid", "that database has no datasets; expected no `db`")

    def require_database(self, name: str | None) -> bool:
        """Whether that database, None or "" being the main one, has datasets.

        Raises:
            Problem: 404: there is no such database.
        """
        if not name:
            return True
        if name in self.service.other_databases:
            return False
        raise Problem(404, "database-unknown", "no database has that name")


async def _of(request: Request) -> Registry:
    return cast("Registry", request.app.state.registry)


TheRegistry = Annotated[Registry, Depends(_of)]
"""A parameter of a route: the datasets of the server."""
Db = Annotated[str | None, Query(max_length=128, description="Another database; it has no datasets.")]
"""A parameter of a route: the name of a database."""
