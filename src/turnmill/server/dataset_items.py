"""One dataset over REST, by name: told, replaced, removed, and its versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from anyio import from_thread
from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import Response
from sqlalchemy import select

from turnmill.errors import UsageError, quote
from turnmill.server.answers import Dataset as DatasetAnswer
from turnmill.server.answers import Versions
from turnmill.server.guard import require_admin
from turnmill.server.listings import Listed
from turnmill.server.problems import Problem
from turnmill.server.registry import Registry, TheRegistry
from turnmill.server.uploads import REFUSALS, published, received, told
from turnmill.server.written import NOT_MODIFIED, Written, answered, tags_of
from turnmill.shelf.directory import directory_of, remove_directory
from turnmill.shelf.manifest import Format
from turnmill.shelf.scan import Dataset
from turnmill.shelf.tables import Job
from turnmill.shelf.upload import name_locked, wanted_of

router = APIRouter(tags=["datasets"])
USING = ("queued", "running", "done")
"""Statuses of jobs that a dataset is kept for."""
ITEM = "/datasets/by-name/{name}"
Name = Annotated[str, Path(max_length=256, description="Of the dataset.")]
IfMatch = Annotated[str | None, Header(description="Only if the dataset still has this ETag; *: only if it is there.")]
IfNoneMatch = Annotated[str | None, Header(description="*: only if it is not there yet.")]
UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"description": "dataset-unknown, dataset-not-usable"},
    503: {"description": "shelf-not-readable"},
}
STALE: dict[int | str, dict[str, Any]] = {412: {"description": "precondition-failed"}}
BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get(ITEM, response_model=DatasetAnswer, responses={**NOT_MODIFIED, **UNKNOWN})
async def show(request: Request, registry: TheRegistry, name: Name) -> Response:
    """One dataset, as the listing says it."""
    return answered(request, (await registry.listings.current()).item(name))


@router.put(
    ITEM,
    response_model=DatasetAnswer,
    responses={201: {"model": DatasetAnswer, "description": "It is new."}, **REFUSALS, **STALE},
    openapi_extra=BODY,
)
async def replace(
    request: Request,
    registry: TheRegistry,
    name: Name,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    format: Annotated[Format, Query()] = "jsonl",
    dialect: Annotated[str | None, Query(max_length=64, description="How its rows say a chat, or auto.")] = None,
) -> Response:
    """Take the body as the file of a dataset, which is made where it is not there."""

    def require(before: Dataset | None) -> None:
        _require_tags(_tag_of(registry, before), if_match, if_none_match)

    with registry.uploading(), told():
        wanted = wanted_of(f"{name}.{format}", format, dialect)
        if if_match or if_none_match:  # known before the body comes, if it can be
            await run_sync(require, _dataset_of(await registry.listings.current(), name))
        with await run_sync(registry.incoming) as incoming:
            await received(request, incoming.write)
            written, is_new = await published(registry, incoming, wanted, require)
    return Response(written.body, 201 if is_new else 200, {"ETag": written.etag}, media_type="application/json")


@router.delete(
    ITEM,
    status_code=204,
    responses={
        404: {"description": "dataset-unknown"},
        409: {"description": "dataset-in-use"},
        503: {"description": "shelf-not-readable"},
        507: {"description": "not-stored"},
        **STALE,
    },
)
async def remove(
    request: Request,
    registry: TheRegistry,
    name: Name,
    if_match: IfMatch = None,
    force: Annotated[bool, Query(description="Although a job used it, or will; needs the scope admin.")] = False,
) -> Response:
    """Remove a dataset, or a directory that is a problem, with everything in it; its record stays."""
    if force:
        require_admin(request.state.grant)
    with told():
        await run_sync(_removed, registry, name, if_match, force)
    return Response(status_code=204)


@router.get(f"{ITEM}/versions", response_model=Versions, responses={**NOT_MODIFIED, **UNKNOWN})
async def versions(request: Request, registry: TheRegistry, name: Name) -> Response:
    """The contents that its file had, by hash; contents that are gone are not kept."""
    dataset = (await registry.listings.current()).dataset(name)
    found = await run_sync(registry.records.versions, name)
    kept = [
        {
            **{key: getattr(one, key) for key in ("sha256", "size_bytes", "num_records")},
            **{key: getattr(one, key) for key in ("first_seen_at", "last_seen_at")},
            "current": one.sha256 == dataset.content.sha256,
        }
        for one in found
    ]
    return answered(request, Written.of({"name": name, "versions": kept}))


def _removed(registry: Registry, name: str, if_match: str | None, force: bool) -> None:
    """Move it away, alone with its directory."""
    shelf = registry.service.shelf
    listed = from_thread.run(registry.listings.current)
    try:
        folder = directory_of(shelf.directory, listed.listing, name)
    except UsageError:
        raise Problem(404, "dataset-unknown", f"no dataset is called {quote(name)}") from None
    with name_locked(shelf.directory, folder.name):
        dataset = _dataset_of(from_thread.run(registry.listings.current), name)
        _require_tags(_tag_of(registry, dataset), if_match, None)
        if not force:
            _require_unused(registry, name)
        remove_directory(folder)


def _require_unused(registry: Registry, name: str) -> None:
    used = select(Job.id).where(Job.dataset == name, Job.status.in_(USING)).limit(1)
    with registry.service.database.reading() as session:
        job = session.scalar(used)
    if job is not None:
        detail = f"the job {job} uses {quote(name)}, or did; nothing was removed"
        raise Problem(409, "dataset-in-use", detail)


def _dataset_of(listed: Listed, name: str) -> Dataset | None:
    return next((one for one in listed.listing.datasets if one.manifest.name == name), None)


def _tag_of(registry: Registry, dataset: Dataset | None) -> Callable[[], str | None]:
    """Gives the tag of a dataset as it is now; None where it is not there."""
    return lambda: (
        None if dataset is None else from_thread.run(registry.listings.current).item(dataset.manifest.name).etag
    )


def _require_tags(current: Callable[[], str | None], if_match: str | None, if_none_match: str | None) -> None:
    """Hold what the request says of the dataset's tag.

    Raises:
        Problem: 412.
    """
    if not if_match and not if_none_match:
        return
    tag = current()
    is_refused = if_match and (tag is None or not {tag, "*"} & set(tags_of(if_match)))
    if is_refused or (if_none_match and tag is not None and {tag, "*"} & set(tags_of(if_none_match))):
        raise Problem(412, "precondition-failed", "the dataset is not what the request expects it to be")
