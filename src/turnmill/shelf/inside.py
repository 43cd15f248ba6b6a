"""Opening a file that lies inside a directory: no link, however it is swapped meanwhile, leads out of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from turnmill.errors import UsageError, quote

_PART = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe that nobody writes to must not block
_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}

State = tuple[int, int, int, int, int]
"""Device, inode, size in bytes, modified and changed (both in nanoseconds): what differs where a file was changed."""


def state_of(found: os.stat_result) -> State:
    """What tells two states of a file apart; the time of the change cannot be set by hand."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def directory_inside(root: Path, name: str) -> Path:
    """The real directory of that name in `root`; a link can name another one of them, and nothing else.

    Raises:
        UsageError: a link to anything that is not directly in `root`.
        OSError: it is not there, or cannot be looked at.
    """
    place = root / name
    if not place.is_symlink():
        return place
    real, real_root = Path(os.path.realpath(place, strict=True)), Path(os.path.realpath(root))
    if real.parent != real_root:
        raise UsageError(f"{quote(name)} is a link that leads out of the shelf; expected a directory in it")
    return real


@contextmanager
def opened_inside(root: Path, relative: str) -> Iterator[BinaryIO]:
    """A regular file below `root`, open for reading.

    Links are followed only where what they name lies below `root`, too; then the place that they name is walked part
    by part without following any, so nobody can put another link there between the look and the opening.

    Args:
        root: a real directory.
        relative: without `..`.

    Raises:
        UsageError: a link leads out, or it is no regular file.
        OSError: it is not there, or cannot be opened.
    """
    number = _open(root, relative)
    try:
        mode = os.fstat(number).st_mode
        if not stat.S_ISREG(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "a device")
            raise UsageError(f"{quote(relative)} is {kind}; expected a file")
    except BaseException:
        os.close(number)
        raise
    with open(number, "rb") as file:
        yield file


def _open(root: Path, relative: str) -> int:
    parts = Path(relative).parts
    with suppress(OSError):
        return _walk(root, parts)
    real_root = Path(os.path.realpath(root, strict=True))
    real = Path(os.path.realpath(root / relative, strict=True))
    if real_root not in real.parents:
        raise UsageError(f"{quote(relative)} is a link that leads out of the dataset's directory")
    return _walk(real_root, real.relative_to(real_root).parts)


def _walk(root: Path, parts: Sequence[str]) -> int:
    """Number of the open file at the end of the parts; no part is a link."""
    folder = os.open(root, _PART)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _PART, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE, dir_fd=folder)
    finally:
        os.close(folder)
