"""Datasets over REST: listed and previewed."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from turnmill.errors import UsageError
from turnmill.server.answers import DatasetList, Preview
from turnmill.server.listings import Listed, reading_of, said
from turnmill.server.problems import Problem
from turnmill.server.registry import Db, Registry, TheRegistry
from turnmill.server.written import NOT_MODIFIED, Written, answered
from turnmill.shelf.content import MAX_PREVIEW_LINES, PREVIEW_LINES, first_lines
from turnmill.shelf.scan import Dataset

router = APIRouter(tags=["datasets"])
MAX_PAGE = 1000
READ = {**NOT_MODIFIED, 503: {"description": "shelf-not-readable"}}
EMPTY = Written.of({"datasets": [], "problems": []})


@router.get("/datasets", response_model=DatasetList, responses={**READ, 404: {"description": "database-unknown"}})
async def list_datasets(
    request: Request,
    registry: TheRegistry,
    db: Db = None,
    limit: Annotated[int | None, Query(ge=1, le=MAX_PAGE, description="So many a page.")] = None,
    cursor: Annotated[str | None, Query(max_length=256, description="`next` of the page before.")] = None,
) -> Response:
    """Every dataset by name, and every directory with a manifest that cannot be used."""
    if not registry.require_database(db):
        return answered(request, EMPTY)
    listed = await registry.listings.current()
    return answered(request, listed.whole if limit is None and cursor is None else _page(listed, limit or 100, cursor))


@router.get(
    "/datasets/preview",
    response_model=Preview,
    responses={**READ, 404: {"description": "dataset-unknown, dataset-not-usable, database-unknown"}},
)
async def preview(
    request: Request,
    registry: TheRegistry,
    name: Annotated[str, Query(max_length=256)],
    lines: Annotated[int, Query(ge=1, le=MAX_PREVIEW_LINES)] = PREVIEW_LINES,
    db: Db = None,
) -> Response:
    """The first rows of a dataset: lines of a file of JSON lines as they are, others as they travel."""
    if not registry.require_database(db):
        raise Problem(404, "dataset-unknown", "that database has no datasets")
    dataset = (await registry.listings.current()).dataset(name)
    return answered(request, await _previewed(registry, dataset, lines))


async def _previewed(registry: Registry, dataset: Dataset, count: int) -> Written:
    def made() -> Written:
        try:
            lines = first_lines(dataset.folder, dataset.manifest, count)
        except UsageError as error:  # it changed since it was listed
            raise Problem(404, "dataset-not-usable", error.message) from None
        records = dataset.content.num_records
        name = dataset.manifest.name
        return Written.of({"name": name, "lines": lines, "num_records": records, "truncated": len(lines) < records})

    return await registry.remembered.get(("preview", count, *reading_of(dataset)), made)


def _page(listed: Listed, limit: int, cursor: str | None) -> Written:
    after = "" if cursor is None else _name_of(cursor)
    left = [dataset for dataset in listed.listing.datasets if dataset.manifest.name > after]
    page: dict[str, Any] = {
        "datasets": [said(one, listed.records[one.manifest.name]) for one in left[:limit]],
        "problems": [problem.as_json() for problem in listed.listing.problems] if cursor is None else [],
    }
    if len(left) > limit:
        page["next"] = base64.urlsafe_b64encode(left[limit - 1].manifest.name.encode()).decode()
    return Written.of(page)


def _name_of(cursor: str) -> str:
    try:
        return base64.b64decode(cursor.encode(), b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise Problem(400, "request-not-valid", "`cursor` is none that a page gave") from None
