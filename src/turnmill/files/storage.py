"""Opening what a path or URL names: local files directly, everything else through fsspec."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from turnmill.errors import TurnmillError, UsageError, shell_word

CHUNK_BYTES = 1 << 20
"""Bytes that are read from a file at a time."""


PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "fsspec[http]"),
    **dict.fromkeys(("sftp", "ssh"), "fsspec[ssh]"),
    "github": "fsspec[github]",
    "hf": "huggingface_hub",
}
"""Protocol → the package that opens it; fsspec opens some others by itself."""


def is_url(path: str) -> bool:
    """Whether fsspec opens it (`s3://…`, `hf://…`); everything else is a local path."""
    return "://" in path


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path inside it.

    Raises:
        UsageError: no such protocol, its package is not installed, or the store cannot be reached.
    """
    import fsspec.core

    with remote(url):
        system, path = fsspec.core.url_to_fs(url)
        return system, cast(str, path)


@contextmanager
def remote(url: str) -> Iterator[None]:
    """Turns what the package of a remote store raises into the error of its URL.

    Every package has its own errors (no credentials, no such bucket, no network), so all of them are taken; their
    tracebacks may hold credentials and are left out.

    Raises:
        UsageError: anything was raised.
    """
    try:
        yield
    except TurnmillError:
        raise
    except ImportError as problem:
        raise UsageError(f"cannot open {url}: {problem}", next_step=_pip_line(url)) from None
    except Exception as problem:
        reason = str(problem).partition("\n")[0] or type(problem).__name__
        raise UsageError(f"cannot open {url}: {reason}", next_step=None) from None


def _pip_line(url: str) -> str:
    """The command that installs what the URL's protocol needs, of the last one where several are chained."""
    protocol = url.rpartition("::")[2].partition("://")[0].lower()
    return f"pip install {shell_word(PACKAGES.get(protocol, 'fsspec[full]'))}"


def open_binary(path: str) -> BinaryIO:
    """The file opened for reading bytes, unbuffered where it is local.

    Raises:
        UsageError: it does not exist or cannot be read.
    """
    if is_url(path):
        system, inner = filesystem(path)
        with remote(path):
            return cast(BinaryIO, system.open(inner, "rb"))
    try:
        return cast(BinaryIO, open(path, "rb", buffering=0))
    except OSError as problem:
        raise unreadable(path, problem) from problem


def size(path: str) -> int:
    """Bytes of the file.

    Raises:
        UsageError: it does not exist or cannot be read, or its store does not say how long it is.
    """
    if is_url(path):
        system, inner = filesystem(path)
        with remote(path):
            found = system.size(inner)
        if found is None:
            raise UsageError(f"cannot read {path}: its size is unknown; expected a file that can be read in parts")
        return int(found)
    try:
        return os.stat(path).st_size
    except OSError as problem:
        raise unreadable(path, problem) from problem


def unreadable(path: str, problem: OSError) -> UsageError:
    """The error of a local file that exists but cannot be read, or does not exist."""
    reason = problem.strerror or str(problem)
    return UsageError(f"cannot read {path}: {reason}", next_step=look_at(path))


def look_at(path: str) -> str | None:
    """The command that shows a local file; None of a URL, which no common command opens."""
    return None if is_url(path) else f"ls -l {shell_word(path)}"


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
