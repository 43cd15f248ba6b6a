"""Serving a sidecar: its socket, its signals, and the line that says where it is."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn

from turnmill.http_service import address_of

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
    server = _Server(config, lambda: notice(f"sidecar on {address_of(bound)}"))
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises once more what it was ended by
    try:
        server.run(sockets=[bound])
    finally:
        signal.signal(signal.SIGTERM, before)
