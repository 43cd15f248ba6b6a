"""Who is let in: looked at before a byte of the body is read."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnmill.server.page import is_of_page
from turnmill.server.problems import Problem
from turnmill.server.service import Service
from turnmill.shelf.access import Grant, digest, grant_of, needs_tokens
from turnmill.shelf.database import DatabaseUnavailable
from turnmill.shelf.tables import now

OPEN = ("/healthz", "/readyz")
"""Paths that need no token."""
READING = frozenset({"GET", "HEAD", "OPTIONS"})
READING_POSTS = ("/explain", "/check", "/replay", "/mix")
"""Ends of the paths that are posted to and change nothing."""
REMEMBERED_S = 1.0
"""How long what a token opens is not asked for again; a revoked one closes after that."""
MAX_REMEMBERED = 1000
SILENCE_S = 60.0
"""A client that sends nothing of its body for so long is given up: it would hold one of the few uploads."""
LEAST_BYTES_PER_S = 1024
"""So is one that sends less than this, all in all."""
MAX_LENGTH_DIGITS = 18
ANYBODY = Grant("", "admin", None, None)
"""Where no token was ever made."""


class Guard:
    """Refuses, as a problem, whoever may not do what is asked, and what is too large.

    Args:
        app: whoever is let in goes on to it; it finds the `grant` in the scope's state, and can ask `is_open()`.
        service: that is guarded.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._known: dict[str, tuple[float, Grant | None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            self._check_host(headers)
            changes = not is_open(scope) and not only_reads(scope["method"], scope["path"])
            if scope["method"] not in READING:
                _check_origin(headers)
            sha256 = _sha256_of(headers)
            grant = await self._grant(scope, sha256)
            self._check_scope(grant, changes=changes)
            limit = self._limit_of(scope)
            _check_body(headers, limit)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        scope.setdefault("state", {}).update(grant=grant, is_open=partial(self._is_open, sha256))
        await self._app(scope, _limited(receive, limit), send)

    def _check_host(self, headers: Headers) -> None:
        """A page elsewhere whose name was made to point here says that name."""
        allowed = self._service.options.allowed_hosts
        host = headers.get("host", "")
        name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
        if allowed and name.lower() not in allowed:
            raise Problem(421, "host-not-allowed", "the Host header names another server than this one")

    async def _grant(self, scope: Scope, sha256: str) -> Grant:
        if is_open(scope):
            return Grant("", "read", None, None)
        try:
            grant = await self._remembered(sha256)
        except DatabaseUnavailable:
            raise Problem(503, "database-unavailable", "the database does not answer") from None
        challenge = {"WWW-Authenticate": "Bearer"}
        if grant is None and not sha256:
            raise Problem(401, "token-missing", "expected Authorization: Bearer TOKEN", headers=challenge)
        if grant is None or not grant.is_valid(now()):
            raise Problem(401, "token-not-valid", "the token is unknown, revoked or expired", headers=challenge)
        return grant

    async def _is_open(self, sha256: str) -> bool:
        """Whether what let a request in still does: an answer can take hours."""
        grant = await self._remembered(sha256)
        return grant is not None and grant.is_valid(now())

    async def _remembered(self, sha256: str) -> Grant | None:
        """What a hash opens, "" being no token at all."""
        known = self._known.get(sha256)
        if known is None or time.monotonic() - known[0] > REMEMBERED_S:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            known = (time.monotonic(), await run_sync(self._looked_up, sha256))
            self._known[sha256] = known
        return known[1]

    def _looked_up(self, sha256: str) -> Grant | None:
        database = self._service.database
        if sha256 and (found := grant_of(database, sha256)) is not None:
            return found
        return None if sha256 or needs_tokens(database) else ANYBODY

    def _check_scope(self, grant: Grant, *, changes: bool) -> None:
        if changes and not grant.allows("write"):
            raise Problem(403, "scope-too-small", f"the token's scope is {grant.scope}; expected write")
        if changes and self._service.options.read_only:
            raise Problem(403, "read-only", "this server only reads")

    def _limit_of(self, scope: Scope) -> int:
        """Bytes that the body may have: of an upload, the file's and those of its form."""
        options = self._service.options
        is_upload = scope["method"] == "PUT" or (scope["method"] == "POST" and scope["path"].endswith("/datasets"))
        return options.max_body_bytes + (options.max_bytes if is_upload else 0)


def require_admin(grant: Grant) -> None:
    """Refuse whoever is no admin.

    Raises:
        Problem: 403.
    """
    if not grant.allows("admin"):
        raise Problem(403, "scope-too-small", f"the token's scope is {grant.scope}; expected admin")


def is_open(scope: Scope) -> bool:
    """Whether anybody may ask for it: whether the server lives, and the page, which holds no data."""
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    return path in OPEN or (is_of_page(path) and scope["method"] in READING)


def only_reads(method: str, path: str) -> bool:
    """Whether the request changes nothing."""
    return method in READING or (method == "POST" and path.endswith(READING_POSTS))


def _sha256_of(headers: Headers) -> str:
    """Of the token that a request brings; "" where it brings none."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return digest(token.strip()) if kind.lower() == "bearer" and token.strip() else ""


def _check_origin(headers: Headers) -> None:
    """A page of another origin may not change anything with what a browser knows."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise Problem(403, "origin-not-allowed", "the request comes from a page of another origin")


def _check_body(headers: Headers, limit: int) -> None:
    """The body is as large as it says, and no larger once it is unpacked: nothing here unpacks it."""
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "encoding-not-taken", "the body has a Content-Encoding; expected it as it is")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Problem(400, "request-not-valid", "Content-Length is no number")
    if len(length) > MAX_LENGTH_DIGITS or int(length) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> Problem:
    return Problem(413, "too-large", f"the request has more than {limit:,} bytes", headers={"Connection": "close"})


def _limited(receive: Receive, limit: int) -> Receive:
    """What is received: up to `limit` bytes, from a client that goes on sending them."""
    taken, began, is_whole = 0, time.monotonic(), False

    async def limited() -> Message:
        nonlocal taken, is_whole
        if is_whole:  # what comes now is that the client has gone, whenever that is
            return await receive()
        left_s = began + SILENCE_S + taken / LEAST_BYTES_PER_S - time.monotonic()
        try:
            async with asyncio.timeout(min(left_s, SILENCE_S)):
                message = await receive()
        except TimeoutError:
            detail = f"the body comes too slowly: {taken:,} bytes in {time.monotonic() - began:.0f} s"
            raise Problem(408, "body-late", detail, headers={"Connection": "close"}) from None
        taken += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if taken > limit:
            raise _too_large(limit)
        return message

    return limited
