"""What the rows of a dataset would come to, over REST: checked, counted, and replayed under other repairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from fastapi.responses import Response

from turnmill.dialects import dialects
from turnmill.errors import TurnmillError, quote
from turnmill.repairs import repairs as all_repairs
from turnmill.server.answers import RowCheck
from turnmill.server.dataset_items import ITEM, UNKNOWN, Name
from turnmill.server.listings import reading_of
from turnmill.server.problems import Problem
from turnmill.server.registry import Registry, TheRegistry
from turnmill.server.row_answers import DatasetProfile, DatasetReplay, ReplayRequest
from turnmill.server.written import NOT_MODIFIED, Written, answered
from turnmill.shelf.profile import profile_of
from turnmill.shelf.reading import DataChanged, NoSuchRow
from turnmill.shelf.replays import replay_rows
from turnmill.shelf.rows import TookTooLong
from turnmill.shelf.scan import Dataset

router = APIRouter(tags=["datasets"])
CHANGED: dict[int | str, dict[str, Any]] = {409: {"description": "dataset-changed"}}


@router.get(f"{ITEM}/check", response_model=RowCheck, responses={**NOT_MODIFIED, **UNKNOWN, **CHANGED})
async def check(request: Request, registry: TheRegistry, name: Name) -> Response:
    """How many rows the chat contract rejects, and with which codes; at most 200,000 rows and 20 seconds of them."""
    whole = await _profiled(registry, await registry.readable(name))
    found = msgspec.json.decode(whole.body)
    return answered(request, Written.of({key: found[key] for key in RowCheck.model_fields}))


@router.get(f"{ITEM}/profile", response_model=DatasetProfile, responses={**NOT_MODIFIED, **UNKNOWN, **CHANGED})
async def profile(request: Request, registry: TheRegistry, name: Name) -> Response:
    """What a check says, and how rows are spread over sources, roles, turns and characters; with the same bounds."""
    return answered(request, await _profiled(registry, await registry.readable(name)))


@router.post(
    f"{ITEM}/replay",
    response_model=DatasetReplay,
    responses={400: {"description": "repair-unknown, dialect-unknown, row-unknown"}, **UNKNOWN, **CHANGED},
)
async def replay(registry: TheRegistry, name: Name, asked: ReplayRequest) -> Response:
    """Which of the rejected rows would pass with other repairs or another dialect; nothing is written."""
    repairs = tuple(asked.repairs or ())
    require_known(repairs, asked.dialect)
    dataset = await registry.readable(name)

    def made() -> dict[str, Any]:
        found = replay_rows(dataset.folder, dataset.manifest, repairs, asked.dialect, asked.line)
        return {"name": name, "sha256": dataset.content.sha256, **found.as_json()}

    key = ("replay", repairs, asked.dialect, asked.line, *reading_of(dataset))
    written = await remembered(registry, key, made)
    return Response(written.body, headers={"ETag": written.etag}, media_type="application/json")


def require_known(repairs: Sequence[str], dialect: str | None) -> None:
    """Let no request name code to load, as `path/to/mine.py:name` would.

    Raises:
        Problem: 400: a repair or a dialect that is not turnmill's own.
    """
    for name in repairs:
        if name not in all_repairs.names():
            known = ", ".join(all_repairs.names())
            raise Problem(400, "repair-unknown", f"no repair is called {quote(name)}; expected: {known}")
    if dialect is not None and dialect not in dialects.names():
        known = ", ".join(dialects.names())
        raise Problem(400, "dialect-unknown", f"no dialect is called {quote(dialect)}; expected: {known}")


async def remembered(registry: Registry, key: tuple[object, ...], make: Callable[[], dict[str, Any]]) -> Written:
    """An answer that whole files are read for.

    Raises:
        Problem: 400 where there is no such row, 404 where a dataset is none any more, 409 where its file changes
            meanwhile, 503 where it takes too long.
    """

    def made() -> Written:
        with told_of_rows():
            return Written.of(make())

    return await registry.remembered.get(key, made, registry.row_readers)


@contextmanager
def told_of_rows() -> Iterator[None]:
    """Says what goes wrong while rows are read as a problem.

    Raises:
        Problem: as `remembered`.
    """
    try:
        yield
    except TookTooLong as error:
        raise Problem(503, "took-too-long", error.message) from None
    except NoSuchRow as error:
        raise Problem(400, "row-unknown", error.message) from None
    except DataChanged as error:
        raise Problem(409, "dataset-changed", error.message) from None
    except TurnmillError as error:
        raise Problem(404, "dataset-not-usable", str(error)) from None


async def _profiled(registry: Registry, dataset: Dataset) -> Written:
    def made() -> dict[str, Any]:
        found = profile_of(dataset.folder, dataset.manifest)
        return {"name": dataset.manifest.name, "sha256": dataset.content.sha256, **found.as_json()}

    return await remembered(registry, ("profile", *reading_of(dataset)), made)
