"""A server on loopback that answers as it is told to, as an OpenAI-compatible endpoint would."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from turnmill.options import Score

Answer = Callable[[dict[str, Any], int], tuple[int, Any]]
"""(request, how many came before it) → status and body."""


class Endpoint:
    """A server on loopback that gives whatever answer it is told to."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        owner, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply({})

            def do_POST(self) -> None:
                self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def reply(self, body: dict[str, Any]) -> None:
                asked = {"path": self.path, **body}
                with lock:
                    number = len(owner.requests)
                    owner.requests.append(asked)
                    owner.keys.append(self.headers.get("Authorization"))
                status, content = answer(asked, number)
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def options(self) -> Score:
        return Score(scorer="http", url=self.url, model="m", timeout_s=20)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
