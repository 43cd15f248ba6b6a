"""The listing of a shelf with its records: one scan for all who ask at once, and its bytes while nothing changed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from turnmill.errors import UsageError, quote
from turnmill.server.problems import Problem
from turnmill.server.written import Written
from turnmill.shelf.records import Records
from turnmill.shelf.scan import Dataset, Listing, Shelf
from turnmill.shelf.tables import DatasetRecord

RECORD_FIELDS = (
    "id", "filename", "size_bytes", "num_records", "sha256", "status", "created_at", "updated_at", "synced_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Listed:
    """What a scan found, and what the records say of it."""

    listing: Listing
    records: dict[str, DatasetRecord]
    whole: Written
    _items: dict[str, Written] = field(default_factory=dict)

    @classmethod
    def of(cls, listing: Listing, records: dict[str, DatasetRecord]) -> Listed:
        """With its bytes."""
        datasets = [said(dataset, records[dataset.manifest.name]) for dataset in listing.datasets]
        problems = [problem.as_json() for problem in listing.problems]
        return cls(listing, records, Written.of({"datasets": datasets, "problems": problems}))

    def says(self, listing: Listing, records: dict[str, DatasetRecord]) -> bool:
        """Whether it is still what it would be made of."""
        if self.listing != listing:
            return False
        return self.records is records or _states(self.records) == _states(records)

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name.

        Raises:
            Problem: 404: there is none, or it cannot be used.
        """
        for dataset in self.listing.datasets:
            if dataset.manifest.name == name:
                return dataset
        for problem in self.listing.problems:
            if problem.dir == name:
                raise Problem(404, "dataset-not-usable", f"{quote(name)} is no dataset: {problem.error}")
        raise Problem(404, "dataset-unknown", f"no dataset is called {quote(name)}")

    def item(self, name: str) -> Written:
        """One dataset as the listing says it.

        Raises:
            Problem: as `dataset`.
        """
        if name not in self._items:
            self._items[name] = Written.of(said(self.dataset(name), self.records[name]))
        return self._items[name]


def reading_of(dataset: Dataset) -> tuple[object, ...]:
    """What its rows depend on: the file's bytes, and how they are read."""
    said = dataset.manifest
    reading = (said.format, str(said.dialect), repr(sorted(said.columns.items())), repr(sorted(said.roles.items())))
    return said.name, dataset.dir, said.file, dataset.content.sha256, *reading


def said(dataset: Dataset, record: DatasetRecord) -> dict[str, Any]:
    """A dataset as a listing says it: its record, and what its manifest says."""
    return {**dataset.as_json(), **{key: getattr(record, key) for key in RECORD_FIELDS}}


def _states(records: dict[str, DatasetRecord]) -> set[tuple[object, ...]]:
    return {(one.id, one.sha256, one.status, one.updated_at, one.synced_at) for one in records.values()}


LOOK_AROUND = 3
"""Turns of the loop before a scan begins: answers go out, whoever asks meanwhile shares it, and then it is alone with
the interpreter."""


class Listings:
    """Scans of one shelf, of which only one runs at a time.

    Whoever asks gets a scan that began after he asked: what was there then is in it.

    Args:
        shelf: that is looked at.
        records: that follow it.
    """

    def __init__(self, shelf: Shelf, records: Records) -> None:
        self._shelf = shelf
        self._records = records
        self._running: asyncio.Task[Listed] | None = None
        self._next: asyncio.Task[Listed] | None = None
        self._last: Listed | None = None
        self._scanner: CapacityLimiter | None = None
        """Has a thread to spare for scans, even where all others wait for one."""

    async def current(self) -> Listed:
        """What the shelf holds now.

        Raises:
            Problem: 503: the shelf cannot be read.
            DatabaseUnavailable: the database does not answer.
        """
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._scan_after(self._running))
            self._next.add_done_callback(_looked_at)
        return await asyncio.shield(self._next)

    async def _scan_after(self, running: asyncio.Task[Listed] | None) -> Listed:
        if running is not None and not running.done():
            await asyncio.wait([running])
        for _ in range(LOOK_AROUND):
            await asyncio.sleep(0)
        self._running, self._next = self._next, None
        if self._scanner is None:  # made where a loop runs
            self._scanner = CapacityLimiter(1)
        return await run_sync(self.scan, limiter=self._scanner)

    def scan(self) -> Listed:
        """As `current`, in this thread and with a scan of its own."""
        try:
            listing = self._shelf.listing()
        except UsageError:
            raise Problem(503, "shelf-not-readable", "the directory of the datasets cannot be read") from None
        records = self._records.sync(listing)
        last = self._last
        if last is None or not last.says(listing, records):
            self._last = last = Listed.of(listing, records)
        return last


def _looked_at(task: asyncio.Task[Listed]) -> None:
    """An error that nobody waited for was still seen."""
    if not task.cancelled():
        task.exception()
