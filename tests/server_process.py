"""A server of its own process on a free port of this machine; run as a script it is that process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def server_process(shelf: Path, database: str, **options: Any) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Gives its URL and its process, which is killed at the end."""
    command = [sys.executable, __file__, str(shelf), database, json.dumps(options)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        assert port, "the server did not start"
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.communicate()


def main(shelf: str, database: str, options: str) -> None:
    import uvicorn

    from turnmill.server.app import create_app
    from turnmill.server.service import Serve
    from turnmill.shelf.database import Database

    app = create_app(Path(shelf), Database(database), Serve(**json.loads(options)))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run([listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
