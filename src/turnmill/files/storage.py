"""Opening what a path or URL names: local files directly, everything else through fsspec."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, cast

from turnmill.errors import UsageError, shell_word
from turnmill.files.stores import RemoteFile, filesystem, forget_listings, is_url, look_in_store, remote, version_of

CHUNK_BYTES = 1 << 20
"""Bytes that are read from a file at a time."""


def open_binary(path: str) -> BinaryIO:
    """The file opened for reading bytes, unbuffered where it is local.

    Raises:
        UsageError: it does not exist or cannot be read.
    """
    if is_url(path):
        system, inner = filesystem(path)
        with remote(path):
            return cast(BinaryIO, RemoteFile(path, system.open(inner, "rb")))
    try:
        return cast(BinaryIO, open(path, "rb", buffering=0))
    except OSError as problem:
        raise unreadable(path, problem) from problem


class FileState(NamedTuple):
    """What is known of a file without reading it; two equal ones are of the same bytes."""

    bytes: int
    version: str
    """Of a local file its times and inode, of a remote one what its store calls its version; "" where it has none."""


def state_of(path: str) -> FileState:
    """The state of the file now.

    Raises:
        UsageError: it does not exist or cannot be read, or its store does not say how long it is.
    """
    if is_url(path):
        system, inner = filesystem(path)
        with remote(path):
            forget_listings(system, inner)  # the file may have been written since
            found = system.info(inner)
        if found.get("size") is None:
            raise UsageError(f"cannot read {path}: its size is unknown; expected a file that can be read in parts")
        return FileState(int(found["size"]), version_of(found))
    try:
        status = os.stat(path)
    except OSError as problem:
        raise unreadable(path, problem) from problem
    return FileState(status.st_size, f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_dev} {status.st_ino}")


def unreadable(path: str, problem: OSError) -> UsageError:
    """The error of a local file that exists but cannot be read, or does not exist."""
    reason = problem.strerror or str(problem)
    return UsageError(f"cannot read {path}: {reason}", next_step=look_at(path))


def look_at(path: str) -> str | None:
    """The command that shows a file; None of a URL that no common command opens."""
    return look_in_store(path) if is_url(path) else f"ls -l {shell_word(path)}"


def chunks(file: BinaryIO, end: int | None = None) -> Iterator[bytes]:
    """The file's bytes from where it stands, `CHUNK_BYTES` at a time, at most `end - tell` of them."""
    left = None if end is None else end - file.tell()
    while left is None or left > 0:
        chunk = file.read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left))
        if not chunk:
            return
        if left is not None:
            left -= len(chunk)
        yield chunk


class Hashing:
    """A readable file that hashes every byte that is read from it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()

    def read(self, count: int = -1) -> bytes:
        """The next bytes, hashed."""
        data = self._file.read(count)
        self._sha256.update(data)
        return data

    def tell(self) -> int:
        """Where the next read begins."""
        return self._file.tell()

    def hexdigest(self) -> str:
        """sha256 of the whole file: reads what nobody has read yet."""
        for _ in chunks(cast(BinaryIO, self)):
            pass
        return self._sha256.hexdigest()


def sha256_of(path: str | os.PathLike[str], opener: Callable[[str], BinaryIO] = open_binary) -> str:
    """Hex sha256 of a file's stored bytes."""
    with opener(os.fspath(path)) as file:
        return Hashing(file).hexdigest()
