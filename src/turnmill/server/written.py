"""Answers as they are sent: their bytes, their tags, and the ones that are kept."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.responses import Response

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The client has it: If-None-Match names its ETag."}
}
"""Of a route that `answered` answers, for its description."""


@dataclass(frozen=True, slots=True)
class Written:
    """An answer as it is sent."""

    body: bytes
    etag: str

    @classmethod
    def of(cls, content: Any) -> Written:
        """As JSON; its tag is that of its bytes."""
        body = msgspec.json.encode(content)
        return cls(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def answered(request: Request, written: Written, status: int = 200) -> Response:
    """What was asked for, or that the client has it already."""
    headers = {"ETag": written.etag, "Cache-Control": "no-cache"}
    if request.method == "GET" and written.etag in tags_of(request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(written.body, status, headers, media_type="application/json")


def tags_of(header: str) -> list[str]:
    """The tags that a header names."""
    return [tag.strip().removeprefix("W/") for tag in header.split(",")]


class Remembered:
    """Answers by what they were made of; the ones that were asked for last.

    Args:
        max_bytes: of all of them together; an answer of more than an eighth of it is not kept.
    """

    def __init__(self, max_bytes: int = 8 << 20) -> None:
        self._max_bytes = max_bytes
        self._kept: dict[tuple[object, ...], Written] = {}
        self._bytes = 0
        self._making: dict[tuple[object, ...], asyncio.Task[Written]] = {}

    async def get(
        self, key: tuple[object, ...], make: Callable[[], Written], limiter: CapacityLimiter | None = None
    ) -> Written:
        """The answer of that key, made in a thread, one of the limiter's, where it is not known."""
        known = self._kept.pop(key, None)
        if known is not None:
            self._kept[key] = known
            return known
        if key not in self._making:  # whoever asks for the same meanwhile waits for it
            self._making[key] = task = asyncio.create_task(self._made(key, make, limiter))
            task.add_done_callback(lambda task: self._ended(key, task))
        return await asyncio.shield(self._making[key])

    def _ended(self, key: tuple[object, ...], task: asyncio.Task[Written]) -> None:
        self._making.pop(key, None)
        if not task.cancelled():
            task.exception()  # one that nobody waited for was still seen

    async def _made(
        self, key: tuple[object, ...], make: Callable[[], Written], limiter: CapacityLimiter | None
    ) -> Written:
        made = await run_sync(make, limiter=limiter)
        if len(made.body) * 8 <= self._max_bytes and key not in self._kept:
            self._kept[key] = made
            self._bytes += len(made.body)
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._kept.pop(next(iter(self._kept))).body)
        return made
