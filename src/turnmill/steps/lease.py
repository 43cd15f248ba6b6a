"""The right to build a folder: held by one runner at a time, on one machine or on several that share a disk.

On one machine a file lock holds it, which the system releases when its holder dies. What no file lock may show is a
runner on another machine: it rewrites a file beside the folder every `BEAT_S` seconds, and a file that has not changed
for `STALE_S` seconds, by the clock of the one who waits, was left by a dead one.
"""

from __future__ import annotations

import os
import platform
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from turnmill.errors import UsageError, shell_word
from turnmill.files.disk import beside, write_whole, writing

BEAT_S = 10.0
STALE_S = 60.0
LOOK_AGAIN_S = 0.5
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Held(msgspec.Struct, frozen=True):
    """What a lease's file says."""

    owner: str
    """Hex, drawn for each lease."""
    machine: str
    beat: int
    """How often its holder has said that it lives."""


class Lease:
    """A lease that is held.

    Args:
        path: its file.
        held: what the file says.
        beat_s: seconds between two beats.
    """

    def __init__(self, path: Path, held: Held, beat_s: float) -> None:
        self._path, self._held, self._beat_s = path, held, beat_s
        self._ended = threading.Event()
        self._is_lost = False
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Make sure that nobody has taken it over.

        Raises:
            UsageError: somebody has: this runner stood still for too long.
        """
        if self._is_lost or _read(self._path, self._held.owner) is None:
            self._is_lost = True
            folder = self._path.parent
            raise UsageError(
                f"another runner took over {self._path.name}: this one did not move for over {STALE_S:.0f} s; what it "
                "finished is kept",
                next_step=f"ls -la {shell_word(folder)}",
            )

    def release(self) -> None:
        """End the beats, and take the file away."""
        self._ended.set()
        self._thread.join()
        if not self._is_lost and _read(self._path, self._held.owner) is not None:
            self._path.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._ended.wait(self._beat_s):
            if _read(self._path, self._held.owner) is None:
                self._is_lost = True
                return
            self._held = msgspec.structs.replace(self._held, beat=self._held.beat + 1)
            try:
                write_whole(self._path, msgspec.json.encode(self._held))
            except OSError:  # a disk that is full for a moment: the next beat tries again
                continue


@contextmanager
def lease(folder: Path, beat_s: float = BEAT_S, stale_s: float = STALE_S) -> Iterator[Lease]:
    """The right to build a folder; whoever comes second waits until the first is done or dead.

    Args:
        folder: what will be built; it need not be there.
        beat_s: seconds between two signs of life.
        stale_s: after how many seconds without one a lease is taken over.

    Raises:
        UsageError: the place cannot be written.
    """
    from filelock import FileLock

    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(beside(folder, "lock"))
        lock.acquire()
    try:
        path = beside(folder, "lease")
        held = Lease(path, _taken(path, stale_s), beat_s)
        try:
            yield held
        finally:
            held.release()
    finally:
        if folder.exists():  # whoever waits for the lock finds the folder, so its name is needed no more
            beside(folder, "lock").unlink(missing_ok=True)
        lock.release()


def _taken(path: Path, stale_s: float) -> Held:
    """The lease, once nobody else holds it; only one runner of a machine is ever here."""
    mine = Held(uuid.uuid4().hex, machine(), 0)
    seen: bytes | None = None
    since = time.monotonic()
    while True:
        with writing(path):
            if _created(path, msgspec.json.encode(mine)):
                return mine
        now = _bytes(path)
        if now != seen:
            seen, since = now, time.monotonic()
        if now is not None and (_left_here(now) or time.monotonic() - since > stale_s):
            path.unlink(missing_ok=True)
        else:
            time.sleep(min(LOOK_AGAIN_S, stale_s / 4))


def _created(path: Path, content: bytes) -> bool:
    """Whether the file was made, and nobody else's was there."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    return True


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _left_here(content: bytes) -> bool:
    """Whether a runner of this machine left it: one that lived would hold the file lock, which is ours."""
    try:
        return msgspec.json.decode(content, type=Held).machine == machine()
    except msgspec.MsgspecError:  # not yet written, or cut short
        return False


def _read(path: Path, owner: str) -> Held | None:
    """What the file says, where it is the owner's."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Held)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.owner == owner else None


def machine() -> str:
    """Name of the running system: processes that share it see each other's file locks."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return platform.node()
