"""Fetching pinned files: resumed where a run broke off, and kept only with the hash that was promised."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from turnmill.errors import StaleError, UsageError
from turnmill.files.disk import writing
from turnmill.files.resolve import resolve
from turnmill.files.storage import look_at, open_binary, sha256_of, state_of
from turnmill.files.stores import COMMIT, filesystem, is_url, remote

CHUNK_BYTES = 1 << 20


class Wanted(NamedTuple):
    """One file to fetch."""

    path: str
    """URL, or local path."""
    name: str
    """Below the source's root."""
    sha256: str | None
    """Hex, where somebody promised it."""


def wanted_files(url: str, files: tuple[str, ...], sha256: dict[str, str]) -> list[Wanted]:
    """The files that a pin names, in order, each with the hash that it must have.

    Args:
        url: of all of them.
        files: names or globs below it; none: the URL itself.
        sha256: name → hash; a name that is missing is taken from the store where that says one.

    Raises:
        UsageError: nothing is there, a hash is of a file that is not, or a file without commit has no hash.
    """
    base = url.rstrip("/") + "/"
    resolved = resolve([f"{base}{name}" for name in files] or [url])
    found = [(path, path.removeprefix(base) if path.startswith(base) else name) for path, name in resolved]
    names = {name for _, name in found}
    unknown = sorted(set(sha256) - names)
    if unknown:
        what = f"{url} has no {unknown[0]}, whose hash is pinned; it has {', '.join(sorted(names)[:5])}"
        raise UsageError(what, next_step=look_at(url))
    wanted = [Wanted(path, name, sha256.get(name) or _stored_sha256(path)) for path, name in found]
    for one in wanted:
        if one.sha256 is None and is_url(one.path) and not COMMIT.search(one.path):
            what = f"{one.path} has no pinned hash, and may change under its name; expected `sha256` of each file"
            raise UsageError(what, next_step="sha256sum FILE")
    return wanted


def _stored_sha256(path: str) -> str | None:
    """The hash that a store keeps of a file: hubs do of the large ones."""
    if not is_url(path):
        return None
    system, inner = filesystem(path)
    with remote(path):
        info: dict[str, Any] = system.info(inner)
    lfs = info.get("lfs")
    found = lfs.get("sha256") if isinstance(lfs, dict) else getattr(lfs, "sha256", None)
    return str(found) if found else None


def fetch(wanted: Wanted, target: Path, partial: Path) -> int:
    """Bring a file to its place; gives its bytes.

    Args:
        wanted: the file.
        target: where it is to lie.
        partial: where what came so far is kept between runs; gone when the file is whole.

    Raises:
        UsageError: the store ends the file before its end, or cannot be reached; what came is kept.
        StaleError: the file has not the hash that was promised; what came is thrown away.
    """
    size = state_of(wanted.path).bytes
    with writing(partial):
        partial.parent.mkdir(parents=True, exist_ok=True)
        have = partial.stat().st_size if partial.exists() else 0
        if have > size:
            partial.unlink()
            have = 0
        with open_binary(wanted.path) as source, partial.open("ab") as out:
            source.seek(have)
            shutil.copyfileobj(source, out, CHUNK_BYTES)
        got = partial.stat().st_size
    if got != size:
        what = f"{wanted.path} ended after {got:,} bytes; expected {size:,}; what came is kept"
        raise UsageError(what, next_step="the same command again")
    found = sha256_of(partial)
    if wanted.sha256 is not None and found != wanted.sha256:
        partial.unlink()
        what = f"{wanted.path} has sha256 {found}; expected {wanted.sha256}; it was thrown away"
        raise StaleError(what, next_step=look_at(wanted.path))
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(partial, target)
    return size


def partial_name(wanted: Wanted) -> str:
    """Name of what came so far of a file, the same in each run."""
    return hashlib.sha256(f"{wanted.path}\n{wanted.sha256}".encode()).hexdigest()[:32] + ".part"
