"""A command in a process group of its own, of which there is never a second one at the same place."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from turnmill.errors import UsageError

LOCK, PROCESS = ".running", ".process"
"""Names of the files at a place: locked as long as the command lives, and the id of its process group."""
_NAMED = 'echo $$ > "$0" && exec "$@"'
"""Shell: write down the own id, which the command keeps, before it is begun."""
LEFT_S = 10.0
"""How long a command that was killed may take to be gone."""
LOOK_EVERY_S = 0.05


class Running:
    """A command that was begun.

    Args:
        arguments: program and arguments.
        place: a directory; whatever still runs there from before is killed first.
        log: the file that what it says is written behind.
        environment: of the command.

    Raises:
        UsageError: what runs there does not end.
    """

    def __init__(self, arguments: Sequence[str], place: Path, log: Path, environment: Mapping[str, str]) -> None:
        lock = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take(lock, place)
            with log.open("ab") as said:
                self._process = subprocess.Popen(
                    ["/bin/sh", "-c", _NAMED, str(place / PROCESS), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    env=dict(environment),
                    pass_fds=(lock,),  # it is locked until the last process that has it is gone
                    start_new_session=True,
                )
        finally:
            os.close(lock)

    def ended(self) -> int | None:
        """Its exit code, below 0 of a signal; None while it runs."""
        return self._process.poll()

    def stop(self, grace_s: float) -> int:
        """End it: as Ctrl-C does, and after a grace for good; gives its exit code."""
        _signal(self._process.pid, signal.SIGINT)
        try:
            return self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            _signal(self._process.pid, signal.SIGKILL)
            return self._process.wait()
        finally:
            _signal(self._process.pid, signal.SIGKILL)  # whatever it left behind in its group


def _take(lock: int, place: Path) -> None:
    """Lock the place, ending what still runs there."""
    until = time.monotonic() + LEFT_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                what = f"a command that an earlier process began in {place} does not end"
                raise UsageError(what, next_step=f"fuser -k {place / LOCK}") from None
            _end_other(place)
            time.sleep(LOOK_EVERY_S)
        else:
            return


def _end_other(place: Path) -> None:
    """Kill what holds the lock: it lives, so that the id it wrote down is its own."""
    with suppress(OSError, ValueError):
        _signal(int((place / PROCESS).read_text()), signal.SIGKILL)


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
