"""The data file of a dataset over REST, as it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import PurePosixPath
from typing import BinaryIO
from urllib.parse import quote as url_quote

from anyio.to_thread import run_sync
from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from turnmill.errors import UsageError
from turnmill.server.dataset_items import ITEM, UNKNOWN, Name
from turnmill.server.problems import Problem
from turnmill.server.registry import TheRegistry
from turnmill.shelf.content import data_size, opened_data
from turnmill.shelf.scan import Dataset

router = APIRouter(tags=["datasets"])
CHUNK_BYTES = 1 << 18
MEDIA_TYPE = "application/octet-stream"
"""Which no browser shows as a page, whatever is in it."""
AS_IT_IS = {"content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}, "description": "The file."}


@router.get(
    f"{ITEM}/file",
    response_class=StreamingResponse,
    responses={200: AS_IT_IS, **UNKNOWN},
)
async def file(registry: TheRegistry, name: Name) -> StreamingResponse:
    """The data file as it is, to be kept."""
    dataset = await registry.readable(name)
    opened = ExitStack()
    try:
        found = await run_sync(opened.enter_context, opened_data(dataset.folder, dataset.manifest))
    except UsageError as error:
        raise Problem(404, "dataset-not-usable", error.message) from None
    size = data_size(found)
    return StreamingResponse(_chunks(opened, found, size), headers=_headers(dataset, size), media_type=MEDIA_TYPE)


def _headers(dataset: Dataset, size: int) -> dict[str, str]:
    name = url_quote(PurePosixPath(dataset.manifest.file).name, safe="")
    return {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "Content-Length": str(size),
        "Content-Security-Policy": "sandbox",
        "X-Content-Type-Options": "nosniff",
    }


async def _chunks(opened: ExitStack, file: BinaryIO, size: int) -> AsyncIterator[bytes]:
    """No more bytes than the file had when it was opened."""
    with opened:
        while size and (chunk := await run_sync(file.read, min(CHUNK_BYTES, size))):
            size -= len(chunk)
            yield chunk
