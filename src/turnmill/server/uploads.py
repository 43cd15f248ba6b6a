"""Uploads over REST: a file becomes a dataset, or replaces the file of one, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anyio import from_thread
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.requests import ClientDisconnect

from turnmill.errors import UsageError
from turnmill.server.answers import Dataset as DatasetAnswer
from turnmill.server.listings import said
from turnmill.server.problems import Problem
from turnmill.server.registry import Db, Registry, TheRegistry
from turnmill.server.upload_form import FILE, UploadForm
from turnmill.server.written import Written
from turnmill.shelf.scan import Dataset, Listing
from turnmill.shelf.upload import MAX_TOLD_FAULTS, Incoming, UploadRefused, Wanted, publish, wanted_of

router = APIRouter(tags=["datasets"])
BATCH_BYTES = 1 << 18
"""So much of a body is handed to a thread at once."""
STATUSES = {
    "name-not-valid": 400, "file-not-valid": 400, "name-taken": 409, "file-named-otherwise": 409,
    "manifest-says-otherwise": 409, "dataset-not-usable": 409, "too-large": 413,
}  # fmt: skip
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"description": "file-not-valid, name-not-valid"},
    409: {"description": "name-taken, file-named-otherwise, manifest-says-otherwise, dataset-not-usable"},
    503: {"description": "too-many-uploads, shelf-not-readable"},
    507: {"description": "not-stored"},
}
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": [FILE],
                    "additionalProperties": False,
                    "properties": {
                        FILE: {"type": "string", "format": "binary", "description": "The data file."},
                        "filename": {
                            "type": "string",
                            "description": "In place of the name that the file is sent with.",
                        },
                        "format": {"type": "string", "enum": ["jsonl", "json", "parquet"], "default": "jsonl"},
                        "dialect": {"type": "string", "description": "How its rows say a chat, or auto."},
                    },
                }
            }
        },
    }
}


@router.post(
    "/datasets",
    status_code=201,
    response_model=DatasetAnswer,
    responses={404: {"description": "database-unknown"}, **REFUSALS},
    openapi_extra=FORM,
)
async def upload(request: Request, registry: TheRegistry, db: Db = None) -> Response:
    """Take a file as the dataset that is named like it; a file that is there already is replaced."""
    registry.require_main(db)
    with registry.uploading(), told(), await run_sync(registry.incoming) as incoming:
        form = UploadForm(request.headers.get("content-type", ""), incoming.write)
        await received(request, form.feed)
        form.finish()
        wanted = wanted_of(form.filename, form.field("format"), form.field("dialect"))
        written, _ = await published(registry, incoming, wanted)
    return Response(written.body, 201, {"ETag": written.etag}, media_type="application/json")


async def received(request: Request, take: Callable[[bytes], object]) -> None:
    """Hand the body on, a batch at a time, in threads: what reads it can be slow."""
    batch, size = [], 0
    async for chunk in request.stream():
        batch.append(chunk)
        size += len(chunk)
        if size >= BATCH_BYTES:
            await run_sync(take, b"".join(batch))
            batch, size = [], 0
    if size:
        await run_sync(take, b"".join(batch))


async def published(
    registry: Registry, incoming: Incoming, wanted: Wanted, require: Callable[[Dataset | None], None] = lambda _: None
) -> tuple[Written, bool]:
    """The dataset that the file has become, as the listing says it, and whether it is new."""

    def look() -> Listing:
        return from_thread.run(registry.listings.current).listing

    def work() -> tuple[Written, bool]:
        dataset, is_new = publish(incoming, wanted, registry.service.shelf, registry.records, require, look)
        record = registry.records.put(wanted.name, dataset.content)
        return Written.of(said(dataset, record)), is_new

    return await run_sync(work)


@contextmanager
def told() -> Iterator[None]:
    """Says what refuses an upload as a problem.

    Raises:
        Problem: as `REFUSALS`.
    """
    try:
        yield
    except UploadRefused as error:
        faults = [{"file": one.file, "line": one.line or None, "error": one.error} for one in error.faults]
        more: dict[str, Any] = {"faults": faults[:MAX_TOLD_FAULTS]} if faults else {}
        raise Problem(STATUSES[error.code], error.code, error.message, **more) from None
    except ClientDisconnect:
        raise Problem(400, "request-not-valid", "the client went away before the body's end") from None
    except UsageError as error:  # it names paths of the server
        raise Problem(507, "not-stored", "the server cannot write to the directory of the datasets") from error
    except OSError as error:
        detail = f"the server cannot keep the file: {error.strerror or 'it is not what was sent'}"
        raise Problem(507, "not-stored", detail) from error
