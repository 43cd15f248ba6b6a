"""Stores that URLs name: their packages, their errors, their versions."""

from __future__ import annotations

import dataclasses
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from turnmill.errors import TurnmillError, UsageError, shell_word

PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "turnmill[s3]"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "fsspec[http]"),
    **dict.fromkeys(("sftp", "ssh"), "fsspec[ssh]"),
    "github": "fsspec[github]",
    "hf": "huggingface_hub",
}
"""Protocol → the package that opens it; fsspec opens some others by itself."""

KEYED = frozenset(("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl"))
"""Protocols of stores that have keys and no folders: what one would make there is a bucket."""

_LOOKS = {
    **dict.fromkeys(("gs", "gcs"), "gcloud storage ls"),
    **dict.fromkeys(("http", "https"), "curl -sSIL"),
    "s3": "aws s3 ls",
}
"""Protocol → the store's own command that shows a URL."""

_VERSIONS = ("ETag", "etag", "blob_id", "xet_hash", "generation", "md5Hash", "content_md5", "sha", "mtime", "created",
             "LastModified", "last_modified", "modified")  # fmt: skip
"""Keys of a store's answer on a file that change whenever the file does, the surest first."""


COMMIT = re.compile("@[0-9a-f]{40}(?:/|$)")
"""In a URL whose files cannot change."""


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
        raise UsageError(f"cannot open {url}: {reason}", next_step=look_in_store(url)) from None


def _protocol(url: str) -> str:
    """The URL's protocol, of the last one where several are chained."""
    return url.rpartition("::")[2].partition("://")[0].lower()


def _pip_line(url: str) -> str:
    return f"pip install {shell_word(PACKAGES.get(_protocol(url), 'fsspec[full]'))}"


def look_in_store(url: str) -> str | None:
    """The command that shows what a URL names or who asks for it, None where no common one does."""
    protocol = _protocol(url)
    if protocol == "hf":
        return "hf auth whoami"  # it answers 401 or 404 of what the one who asks may not see
    command = _LOOKS.get(protocol)
    return None if command is None else f"{command} {shell_word(url.rpartition('::')[2])}"


class RemoteFile(io.RawIOBase):
    """A store's file whose errors while it is read are those of its URL."""

    def __init__(self, url: str, file: BinaryIO) -> None:
        self._url, self._file = url, file

    def read(self, count: int = -1) -> bytes:
        """The next bytes, `count` of them unless the file ends before."""
        with remote(self._url):
            return self._file.read(count)

    def readall(self) -> bytes:
        """All bytes that are left."""
        return self.read()

    def readinto(self, buffer: Any) -> int:
        """How many bytes were put into the buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Where the next read begins, after it was moved there."""
        with remote(self._url):
            return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Where the next read begins."""
        return self._file.tell()

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes: what cannot be has no known size and is refused."""
        return True

    def close(self) -> None:
        """Give back what the store holds open."""
        if not self.closed:
            self._file.close()
        super().close()


def version_of(found: Mapping[str, Any]) -> str:
    """What a store's answer on a file says of its version, "" where it says nothing."""
    return next((f"{key} {found[key]}" for key in _VERSIONS if found.get(key)), "")


def forget_listings(system: Any, path: str) -> None:
    """Ask the store anew for what is at a path, unless nothing there can change."""
    if not COMMIT.search(path):
        system.invalidate_cache()


def pinned(system: Any, path: str) -> str:
    """The path with the commit that its revision stands for now, in a store that has revisions (`hf://`).

    A branch may move between two reads; a commit does not.
    """
    if getattr(system, "protocol", None) != "hf":
        return path
    from huggingface_hub import HfApi

    place = system.resolve_path(path)
    if not hasattr(place, "revision"):
        return path  # a bucket: it has none
    api = HfApi(endpoint=system.endpoint, token=system.token)
    commit = api.repo_info(place.repo_id, repo_type=place.repo_type, revision=place.revision).sha
    return cast(str, dataclasses.replace(place, revision=commit, _raw_revision=None).unresolve())
