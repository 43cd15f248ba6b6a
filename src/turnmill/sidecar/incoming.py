"""The body of a job start: spooled to the disk as it comes, its content decoded from there, piece by piece."""

from __future__ import annotations

import asyncio
import binascii
import mmap
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.errors import quote
from turnmill.sidecar.problems import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

CONTENT = "dataset_content"
ROOM_FOR_OPTIONS_BYTES = 1 << 16
MAX_OPTION_BYTES = 1 << 12
"""Of one value beside the content."""
CHUNK_CHARACTERS = 1 << 18
"""Of base64 that are decoded at once: a multiple of four."""
SILENCE_S = 60.0
"""A client that says nothing for so long is given up."""
JSON_MEDIA_TYPE = "application/json"


class Incoming(NamedTuple):
    """A job start as it came."""

    fields: dict[str, Json]
    """All but the content; those that are null are left out."""
    content: memoryview | None
    """The JSON text of the content, in the spooled body."""


class _Content(msgspec.Struct):
    """What of a body may be large; whatever else it has is passed over."""

    dataset_content: msgspec.Raw = msgspec.Raw(b"null")


def body_limit(max_bytes: int) -> int:
    """Bytes of the largest body: base64 of the largest file, and the options."""
    return -(-max_bytes // 3) * 4 + ROOM_FOR_OPTIONS_BYTES


async def spool(request: Request, file: BinaryIO, limit: int) -> None:
    """Write a body to a file as it comes.

    Raises:
        Refused: it is not said to be JSON, is larger than the limit, or stops coming.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != JSON_MEDIA_TYPE:
        raise Refused(415, "media-type", f"the body is {quote(media_type)}; expected {JSON_MEDIA_TYPE}")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(f"has {int(declared):,} bytes", limit)
    size = 0
    chunks = request.stream()
    while True:
        try:
            chunk = await asyncio.wait_for(anext(chunks, None), SILENCE_S)
        except TimeoutError:
            raise Refused(
                408, "body-late", f"nothing came for {SILENCE_S:g} s; expected the rest of the body"
            ) from None
        if chunk is None:
            return
        size += len(chunk)
        if size > limit:
            raise _too_large("has more", limit)
        file.write(chunk)


def _too_large(what: str, limit: int) -> Refused:
    return Refused(413, "body-too-large", f"the body {what}; expected at most {limit:,} bytes")


def read_start(file: BinaryIO) -> Incoming:
    """What a spooled body says.

    Raises:
        Refused: it is no JSON object, or a value beside the content is too long to be one.
    """
    file.flush()
    if not file.tell():
        raise Refused(400, "body-invalid", "the body is empty; expected a JSON object")
    body = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        _require_few(len(body) - len(memoryview(msgspec.json.decode(body, type=_Content).dataset_content)))
        found = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        values = {name: memoryview(raw) for name, raw in found.items()}
        content = values.pop(CONTENT, None)
        long = next((name for name, value in values.items() if len(value) > MAX_OPTION_BYTES), None)
        if long is not None:
            what = f"{quote(long)} has {len(values[long]):,} bytes; expected at most {MAX_OPTION_BYTES:,}"
            raise Refused(400, "option-invalid", what)
        fields = {name: msgspec.json.decode(value) for name, value in values.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        # of the decoder's words none quotes the body
        raise Refused(400, "body-invalid", f"the body is no JSON object: {str(problem)[:200]}") from None
    if content is not None and bytes(content[:4]) == b"null":
        content = None
    return Incoming({name: value for name, value in fields.items() if value is not None}, content)


def _require_few(size: int) -> None:
    """Refuse a body that is large by something else than its content: each of its keys would be kept in memory."""
    if size > ROOM_FOR_OPTIONS_BYTES:
        what = f"the body has {size:,} bytes beside {CONTENT}; expected at most {ROOM_FOR_OPTIONS_BYTES:,}"
        raise Refused(413, "body-too-large", what)


def decoded(content: memoryview) -> Iterator[bytes]:
    """The bytes that a JSON text says in base64, piece by piece.

    Raises:
        Refused: it is no text, empty, or not base64.
    """
    text = _unescaped(content)
    if not len(text):
        raise _not_content("is empty")
    try:
        for start in range(0, len(text), CHUNK_CHARACTERS):
            chunk = bytes(text[start : start + CHUNK_CHARACTERS])
            if b"=" in chunk and start + CHUNK_CHARACTERS < len(text):
                raise _not_content("is not base64: its padding is not at its end")
            yield binascii.a2b_base64(chunk, strict_mode=True)
    except binascii.Error as problem:
        raise _not_content(f"is not base64: {problem}") from None


def _unescaped(content: memoryview) -> memoryview:
    """The characters of a JSON text; only one with escapes (some writers put them before slashes) is copied."""
    if bytes(content[:1]) != b'"':
        raise _not_content("is no text")
    text = content[1:-1]
    starts = range(0, len(text), CHUNK_CHARACTERS)
    if not any(b"\\" in bytes(text[start : start + CHUNK_CHARACTERS]) for start in starts):
        return text
    try:
        return memoryview(msgspec.json.decode(content, type=str).encode("ascii"))
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise _not_content("is not base64: it holds other characters") from None


def _not_content(what: str) -> Refused:
    return Refused(400, "dataset-content-invalid", f"{CONTENT} {what}; expected base64 of the file")
