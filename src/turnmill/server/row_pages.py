"""Rows over REST: a page of those that are asked for, read on by cursor, and one of them whole."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response

from turnmill.server.dataset_items import ITEM, UNKNOWN, Name
from turnmill.server.dataset_profile import CHANGED, require_known, told_of_rows
from turnmill.server.problems import Problem
from turnmill.server.registry import TheRegistry
from turnmill.server.row_answers import MAX_REPAIRS, DatasetRow, RowPage
from turnmill.server.written import NOT_MODIFIED, Written, answered
from turnmill.shelf.reading import NoSuchRow, Place
from turnmill.shelf.row_pages import Wanted, page_of
from turnmill.shelf.row_views import row_at
from turnmill.shelf.scan import Dataset

router = APIRouter(tags=["datasets"])
MAX_PAGE = 200
MAX_COUNT = 10**12
"""Of turns or characters that can be asked for."""
_CURSOR = re.compile(r"([0-9a-f]{64}) ([0-9]{1,18}) ([0-9]{1,18})")
Count = Annotated[int | None, Query(ge=0, le=MAX_COUNT)]
Line = Annotated[int, Path(ge=1, le=10**9, description="From 1; of a file that is not JSON lines, the row.")]


def _wanted(  # noqa: PLR0913  # a parameter for each thing that can be asked
    q: Annotated[str | None, Query(max_length=1000, description="Contained in what is said, in any case.")] = None,
    code: Annotated[
        str | None, Query(max_length=64, description="That a row would leave with; `any` of them, or `none`.")
    ] = None,
    source: Annotated[str | None, Query(max_length=120, description="What the row says it comes from.")] = None,
    role: Annotated[
        Literal["system", "developer", "user", "assistant", "tool"] | None, Query(description="Of any turn.")
    ] = None,
    min_turns: Count = None,
    max_turns: Count = None,
    min_characters: Count = None,
    max_characters: Count = None,
    reasoning: Annotated[bool | None, Query(description="Whether it has a turn of reasoning.")] = None,
    calls: Annotated[bool | None, Query(description="Whether it calls tools.")] = None,
    tools: Annotated[bool | None, Query(description="Whether it defines tools.")] = None,
) -> Wanted:
    return Wanted(
        text=q or None,
        code=code or None,
        source=source or None,
        role=role,
        min_turns=min_turns,
        max_turns=max_turns,
        min_characters=min_characters,
        max_characters=max_characters,
        reasoning=reasoning,
        calls=calls,
        tools=tools,
    )


@router.get(f"{ITEM}/rows", response_model=RowPage, responses={**NOT_MODIFIED, **UNKNOWN, **CHANGED})
async def rows(
    request: Request,
    registry: TheRegistry,
    name: Name,
    wanted: Annotated[Wanted, Depends(_wanted)],
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="So many a page, at most.")] = 50,
    cursor: Annotated[str | None, Query(max_length=256, description="`next` of the page before.")] = None,
) -> Response:
    """Rows in the order of the file. A page ends after so many rows, or after two seconds with what was found."""
    dataset = await registry.readable(name)
    place = Place() if cursor is None else _place_of(cursor, dataset)

    def made() -> Written:
        with told_of_rows():
            page = page_of(dataset.folder, dataset.manifest, wanted, place, limit)
        next_ = None if page.next is None else _cursor_of(page.next, dataset)
        return Written.of({**_of(dataset), "rows": page.rows, "next": next_, "scanned": page.scanned})

    return answered(request, await run_sync(made, limiter=registry.page_readers))


@router.get(
    f"{ITEM}/rows/{{line}}",
    response_model=DatasetRow,
    responses={
        **NOT_MODIFIED, **UNKNOWN, **CHANGED,
        400: {"description": "repair-unknown, dialect-unknown"},
        404: {"description": "row-unknown, dataset-unknown, dataset-not-usable"},
    },
)  # fmt: skip
async def row(
    request: Request,
    registry: TheRegistry,
    name: Name,
    line: Line,
    repair: Annotated[list[str] | None, Query(max_length=MAX_REPAIRS, description="Made before, in order.")] = None,
    dialect: Annotated[str | None, Query(max_length=64, description="That it is read as.")] = None,
) -> Response:
    """One row: its own bytes, what they hold, and the conversation that it is read as."""
    require_known(repair or (), dialect)
    dataset = await registry.readable(name)

    def made() -> Written:
        with told_of_rows():
            try:
                found = row_at(dataset.folder, dataset.manifest, line, repair or (), dialect)
            except NoSuchRow as error:
                raise Problem(404, "row-unknown", error.message) from None
        return Written.of({**_of(dataset, counted=False), **found})

    return answered(request, await run_sync(made, limiter=registry.page_readers))


def _of(dataset: Dataset, *, counted: bool = True) -> dict[str, Any]:
    said: dict[str, Any] = {"name": dataset.manifest.name, "sha256": dataset.content.sha256}
    if not counted:
        return said
    return {**said, "num_records": dataset.content.num_records if dataset.content.is_usable else None}


def _cursor_of(place: Place, dataset: Dataset) -> str:
    return base64.urlsafe_b64encode(f"{dataset.content.sha256} {place.start} {place.line}".encode()).decode()


def _place_of(cursor: str, dataset: Dataset) -> Place:
    """Where a page goes on.

    Raises:
        Problem: 400: no page gave it; 409: the file was another one then.
    """
    try:
        found = _CURSOR.fullmatch(base64.b64decode(cursor.encode(), b"-_", validate=True).decode())
    except (binascii.Error, ValueError):
        found = None
    if found is None:
        raise Problem(400, "request-not-valid", "`cursor` is none that a page gave")
    if found[1] != dataset.content.sha256:
        detail = "the data file has changed since the page that gave the cursor; begin again, without one"
        raise Problem(409, "dataset-changed", detail)
    return Place(int(found[2]), int(found[3]))
