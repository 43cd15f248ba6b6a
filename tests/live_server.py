"""An app behind a real port, in a thread of the tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from turnmill.http_service import address_of
from turnmill.server.running import listening


@contextmanager
def live(app: Any) -> Iterator[str]:
    """Serve the app on loopback; gives its URL."""
    opened = listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, args=([opened],), daemon=True)
    thread.start()
    try:
        yield address_of(opened)
    finally:
        server.should_exit = True
        thread.join(30)
        opened.close()
