"""Connections of clients that send no request: they are hung up on, so that nobody can hold all there are."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """A connection whose requests have to come within the time that it may be idle, from its first byte on."""

    _awaited_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A client has come, and says nothing yet."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """A client says something, which need not be a whole request."""
        super().data_received(data)
        self._watch()

    def _watch(self) -> None:
        """Uvicorn's own clock is stopped by the first byte of a request; here it goes on until the last of its head."""
        if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
            self._awaited_since = None
            return
        if self._awaited_since is None:
            self._awaited_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            end = self._awaited_since + self.timeout_keep_alive
            self.timeout_keep_alive_task = self.loop.call_at(end, self.timeout_keep_alive_handler)
