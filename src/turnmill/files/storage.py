"""Opening what a path or URL names: local files directly, everything else through fsspec."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from turnmill.errors import UsageError, shell_word

CHUNK_BYTES = 1 << 20
"""Bytes that are read from a file at a time."""


def is_url(path: str) -> bool:
    """Whether fsspec opens it (`s3://…`, `hf://…`); everything else is a local path."""
    return "://" in path


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path inside it.

    Raises:
        UsageError: no such protocol, or its package is not installed.
    """
    import fsspec.core

    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as problem:
        raise UsageError(f"cannot open {url}: {problem}", next_step="turnmill prepare --help") from problem
    return system, cast(str, path)


def open_binary(path: str) -> BinaryIO:
    """The file opened for reading bytes, unbuffered where it is local.

    Raises:
        UsageError: it does not exist or cannot be read.
    """
    try:
        if is_url(path):
            system, inner = filesystem(path)
            return cast(BinaryIO, system.open(inner, "rb"))
        return cast(BinaryIO, open(path, "rb", buffering=0))
    except OSError as problem:
        raise unreadable(path, problem) from problem


def size(path: str) -> int:
    """Bytes of the file.

    Raises:
        UsageError: it does not exist or cannot be read.
    """
    try:
        if is_url(path):
            system, inner = filesystem(path)
            return int(system.size(inner))
        return os.stat(path).st_size
    except OSError as problem:
        raise unreadable(path, problem) from problem


def unreadable(path: str, problem: OSError) -> UsageError:
    """The error of a file that exists but cannot be read, or does not exist."""
    reason = problem.strerror or str(problem)
    return UsageError(f"cannot read {path}: {reason}", next_step=f"ls -l {shell_word(path)}")


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
