"""Serving a sidecar: its socket, its signals, and the line that says where it is."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import uvicorn

from turnmill.errors import UsageError, quote

if TYPE_CHECKING:
    from fastapi import FastAPI

CLOSING_S = 5
"""Seconds that requests have to end once the service stops."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def bind(host: str, port: int) -> socket.socket:
    """A socket that is bound; port 0 takes a free one.

    Raises:
        UsageError: the address cannot be had.
    """
    with ExitStack() as opened:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, kind, protocol, _, address = found[0]
            made = opened.enter_context(socket.socket(family, kind, protocol))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
        except (OSError, OverflowError, UnicodeError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else str(problem)
            what = f"cannot listen on {quote(host)}, port {port}: {why}"
            raise UsageError(what, next_step="--port 0") from None
        opened.pop_all()
    return made


def url_of(bound: socket.socket) -> str:
    """Where a socket is reached."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: FastAPI, bound: socket.socket, notice: Callable[[str], None]) -> None:
    """Serve until a signal asks to stop, then end requests and the app; SIGTERM is a way to end like any other.

    Args:
        app: of the sidecar.
        bound: what it listens on; left open.
        notice: told where it is, once it answers.
    """
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=CLOSING_S, lifespan="on"
    )
    server = _Server(config, lambda: notice(f"sidecar on {url_of(bound)}"))
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises once more what it was ended by
    try:
        server.run(sockets=[bound])
    finally:
        signal.signal(signal.SIGTERM, before)
