"""A service of tests: `turnmill serve` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx

import turnmill

PATIENCE_S = 120.0


class Server:
    """A server that runs, and its workers.

    Args:
        place: the directory of its database, shelf and jobs.
        options: of `turnmill serve`.
    """

    def __init__(self, place: Path, *options: str | Path) -> None:
        self.said = place / "server.log"
        said = self.said.open("ab")
        before = self.said.stat().st_size
        command = [sys.executable, "-m", "turnmill", "serve", "--port", "0", *map(str, options)]
        environment = {**os.environ, "PYTHONPATH": str(Path(turnmill.__file__).parents[1])}
        self.process = subprocess.Popen(command, cwd=place, stdout=said, stderr=said, env=environment)
        said.close()
        wait_for(lambda: " serves " in self.said.read_text()[before:] or self.process.poll() is not None)
        assert self.process.poll() is None, self.said.read_text()
        line = next(line for line in self.said.read_text()[before:].splitlines() if " serves " in line)
        self.url = line.partition(" ")[0]
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def workers(self) -> list[int]:
        """Ids of the workers' processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(child) for child in children.read_text().split()] if children.exists() else []

    def job(self, job_id: str) -> Any:
        """A job as it is now."""
        return self.client.get(f"/training/jobs/{job_id}").json()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; gives its exit code."""
        self.client.close()
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def wait_for(is_so: Callable[[], Any], within_s: float = PATIENCE_S) -> None:
    """Look until it is so."""
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
