"""Writing so that a crash leaves nothing half-visible, and a full or read-only disk an error that says where."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnmill.errors import UsageError, shell_word

_PLACE_IS_AT_FAULT = {
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTDIR,
    errno.EEXIST, errno.EBUSY,
}  # fmt: skip


@contextmanager
def writing(place: str | Path) -> Iterator[None]:
    """Turns what the disk refuses into an error that names it.

    Raises:
        UsageError: no space, no permission, a read-only or impossible place.
    """
    try:
        yield
    except OSError as problem:
        if problem.errno not in _PLACE_IS_AT_FAULT:
            raise
        where = problem.filename or place
        reason = os.strerror(problem.errno)
        raise UsageError(
            f"cannot write {where}: {reason}", next_step=f"df -h {shell_word(_existing(Path(place)))}"
        ) from problem


def _existing(place: Path) -> Path:
    return next((folder for folder in (place, *place.parents) if folder.exists()), place)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_tree(folder: Path) -> None:
    """Wait until all files and names below a folder are on the disk."""
    for inner, _, names in os.walk(folder):
        for name in names:
            _sync(os.path.join(inner, name))
        _sync(inner)


def sync_names(folder: Path) -> None:
    """Wait until the names in a folder are on the disk: after a rename."""
    _sync(folder)


def _sync(path: str | Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def link_or_copy(source: Path, target: Path) -> None:
    """The file under a second name; its bytes where the two lie on different devices."""
    try:
        os.link(source, target)
    except OSError as problem:
        if problem.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}:
            raise
        shutil.copyfile(source, target)


def beside(place: Path, suffix: str) -> Path:
    """The hidden neighbour `.NAME.suffix` of a place."""
    return place.with_name(f".{place.name}.{suffix}")
