"""The processes that work on runs: each holds its run's lock as long as it lives, whatever becomes of the sidecar."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Timer

from turnmill.sidecar.runs import Process

POLL_S = 0.1


class Child:
    """A process with a group of its own, which writes what it says to a log.

    Args:
        command: words.
        folder: it works in.
        log: what it says is appended there.
        lock: open file of the run's lock, which the process inherits.
        environment: all of it.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, log: Path, lock: int, environment: Mapping[str, str]
    ) -> None:
        with log.open("ab") as said:
            self._popen = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                pass_fds=(lock,), start_new_session=True, env=dict(environment),
            )  # fmt: skip
        self._guard = Lock()
        self._is_over = False
        self._timer: Timer | None = None

    @property
    def process(self) -> Process:
        """What it is told by when this process is gone."""
        return Process(pid=self._popen.pid, began=began(self._popen.pid) or "")

    def wait(self) -> int:
        """Wait for its end, and end what it left behind; gives its exit code, or minus the signal that ended it."""
        os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT)  # not reaped: its number is nobody else's yet
        with self._guard:
            self._is_over = True
            end_group(self._popen.pid)
            if self._timer is not None:
                self._timer.cancel()
            return self._popen.wait()

    def ask_to_stop(self, grace_s: float) -> None:
        """Ask it to stop behind its step; it is ended where it has not after some seconds."""
        with self._guard:
            if not self._is_over and self._timer is None:
                os.kill(self._popen.pid, signal.SIGTERM)
                self._timer = Timer(grace_s, self._end)
                self._timer.daemon = True
                self._timer.start()

    def _end(self) -> None:
        with self._guard:
            if not self._is_over:
                end_group(self._popen.pid)


def began(pid: int) -> str | None:
    """When a process began, as the kernel counts; None where there is none, or nobody says."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def end_group(group: int) -> None:
    """End every process of a group at once."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def take_lock(place: Path) -> int | None:
    """The open file of a lock that is now held here; None where another process holds it.

    Raises:
        OSError: it cannot be opened.
    """
    number = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    except BaseException:
        os.close(number)
        raise
    return number


def take_over(place: Path, process: Process | None, grace_s: float, pause: Callable[[float], bool]) -> int | None:
    """The run's lock, once what a killed sidecar left at work is gone.

    It is asked to stop, and ended after some seconds; what is not known by its number and time is waited for.

    Args:
        place: of the lock.
        process: that the killed sidecar had begun.
        grace_s: seconds between the two.
        pause: waits so many seconds; True: give up.
    """
    waited = 0.0
    while (lock := take_lock(place)) is None:
        if process is not None and process.began:
            _press(process, is_first=waited == 0, is_last=waited >= grace_s)
        if pause(POLL_S):
            return None
        waited += POLL_S
    return lock


def _press(process: Process, *, is_first: bool, is_last: bool) -> None:
    """Ask a process that is not ours to stop, or end it with its group; one that only has its number is let be."""
    there = began(process.pid)
    if there is None or (is_last and there == process.began):
        end_group(process.pid)  # where it is gone itself, the group that it left behind keeps the number
    elif is_first and there == process.began:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGTERM)
