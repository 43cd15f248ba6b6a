"""A server of its own process on a free port of this machine; run as a script it is that process."""

from __future__ import annotations

import json
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
        url = process.stdout.readline().decode().strip()
        assert url, "the server did not start"
        yield url, process
    finally:
        process.kill()
        process.communicate()


def main(shelf: str, database: str, options: str) -> None:
    from turnmill.http_service import address_of
    from turnmill.server.app import create_app
    from turnmill.server.running import listening, run
    from turnmill.server.service import Serve
    from turnmill.shelf.database import Database

    chosen = Serve(jobs=Path(shelf).parent / "jobs", **json.loads(options))
    app = create_app(Path(shelf), Database(database), chosen)
    opened = listening("127.0.0.1", 0)
    sys.stdout.write(f"{address_of(opened)}\n")
    sys.stdout.flush()
    run(app, opened, [])


if __name__ == "__main__":
    main(*sys.argv[1:])
