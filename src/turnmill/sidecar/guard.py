"""Who may speak to the service: hosts that it is called by, pages that it is called from, and the shared secret."""

from __future__ import annotations

import hmac
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from turnmill.errors import UsageError, quote, shell_word
from turnmill.http_service import is_loopback
from turnmill.sidecar.problems import Refused, problem_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

SECRET_VARIABLE = "TURNMILL_SIDECAR_SECRET"
MIN_SECRET_CHARACTERS = 16
OPEN_PATHS = frozenset({"/healthz"})
"""What is answered without the secret."""
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
MAKE_SECRET = "openssl rand -hex 32 > sidecar.secret && chmod 600 sidecar.secret"


def read_secret(file: Path | None) -> str | None:
    """The shared secret: of a file, else of the environment, from where it is taken so that no process inherits it.

    Raises:
        UsageError: the file cannot be read, or what it holds is no secret.
    """
    from_environment = os.environ.pop(SECRET_VARIABLE, None)
    if file is None:
        return None if from_environment is None else _checked(from_environment, SECRET_VARIABLE)
    try:
        content = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read the secret in {file}: {why}", next_step=MAKE_SECRET) from None
    return _checked(content, str(file))


def _checked(content: str, where: str) -> str:
    secret = content.strip()
    if len(secret) < MIN_SECRET_CHARACTERS or not secret.isascii() or not secret.isprintable() or " " in secret:
        what = f"the secret in {where} has {len(secret)} characters"
        expected = f"expected at least {MIN_SECRET_CHARACTERS}, printable ones of ASCII and no space"
        raise UsageError(f"{what}; {expected}", next_step=MAKE_SECRET)
    return secret


def require_secret(host: str, secret: str | None) -> None:
    """Refuse to be reached from other machines by anybody.

    Raises:
        UsageError: the address is not a loopback one, and there is no secret.
    """
    if secret is None and not is_loopback(host):
        what = f"--host {shell_word(host)} can be reached from other machines, and there is no secret"
        raise UsageError(f"{what}; expected --secret-file FILE, or {SECRET_VARIABLE}", next_step=MAKE_SECRET)


class Guard:
    """Stands before an app, and lets through what it knows.

    Args:
        app: what is guarded.
        secret: that every request but those of `OPEN_PATHS` brings; None: none is needed.
        host: that the service is bound to; where it is a loopback one, requests name this machine: a page that has its
            own name point here does not.
    """

    def __init__(self, app: ASGIApp, secret: str | None, host: str) -> None:
        self._app, self._secret = app, None if secret is None else secret.encode("ascii")
        self._hosts = LOCAL_NAMES | {host} if is_loopback(host) else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            try:
                self._require(Headers(scope=scope), scope["path"])
            except Refused as refused:
                await problem_response(refused)(scope, receive, send)
            else:
                await self._app(scope, receive, send)

    def _require(self, headers: Headers, path: str) -> None:
        if self._hosts is not None:
            self._require_local(headers, self._hosts)
        if self._secret is not None and path not in OPEN_PATHS:
            self._require_bearer(headers, self._secret)

    def _require_local(self, headers: Headers, hosts: frozenset[str]) -> None:
        named = headers.getlist("host")
        if len(named) != 1 or _name_of(f"//{named[0]}") not in hosts:
            raise Refused(403, "host-refused", f"the request is for the host {quote(named)}; expected this machine")
        origin = headers.get("origin")
        if origin is not None and _name_of(origin) not in hosts:
            raise Refused(403, "origin-refused", f"the request comes from a page of {quote(origin)}; expected none")

    def _require_bearer(self, headers: Headers, secret: bytes) -> None:
        challenge = {"WWW-Authenticate": "Bearer"}
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            what = "the request brings no secret; expected the header Authorization: Bearer SECRET"
            raise Refused(401, "secret-missing", what, headers=challenge)
        if not hmac.compare_digest(given.strip().encode("latin-1", "replace"), secret):
            raise Refused(401, "secret-wrong", "the request brings another secret", headers=challenge)


def _name_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
