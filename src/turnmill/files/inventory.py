"""What a published folder holds: every file with its hash, in the folder's manifest, and whether that is still so."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from turnmill.conversation import Json
from turnmill.errors import StaleError, UsageError, shell_word
from turnmill.files.storage import sha256_of

MANIFEST = "manifest.json"


class FileEntry(msgspec.Struct, frozen=True):
    """One file of a folder."""

    path: str
    """Relative to the folder, with `/`."""
    sha256: str
    bytes: int
    rows: int | None = None
    """Rows of a Parquet or Arrow file."""


def inventory(folder: Path) -> tuple[FileEntry, ...]:
    """Every file below a folder but its manifest, in the order of their paths."""
    paths = [Path(inner, name) for inner, _, names in os.walk(folder) for name in names]
    relative = {path.relative_to(folder).as_posix(): path for path in paths}
    return tuple(_entry(name, relative[name]) for name in sorted(relative) if name != MANIFEST)


def _entry(name: str, path: Path) -> FileEntry:
    return FileEntry(name, sha256_of(path), path.stat().st_size, rows_of(path))


def rows_of(path: Path) -> int | None:
    """Rows of a Parquet or Arrow file, None of any other."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return int(pq.read_metadata(path).num_rows)
    if path.suffix == ".arrow":
        import pyarrow as pa

        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as stored:
            return int(sum(stored.get_batch(number).num_rows for number in range(stored.num_record_batches)))
    return None


def json_file(value: Json) -> bytes:
    """The bytes of a JSON file that people read too: two spaces of indentation, keys as given."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2).encode("utf-8") + b"\n"


def is_published(folder: Path) -> bool:
    """Whether turnmill published this folder."""
    try:
        read_manifest(folder)
    except (UsageError, StaleError):
        return False
    return True


def read_manifest(folder: Path) -> dict[str, Any]:
    """A published folder's manifest.

    Raises:
        UsageError: there is none, or it cannot be read.
        StaleError: it is not turnmill's, or damaged.
    """
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except OSError as problem:
        what = f"{folder} is no prepared folder: it has no {MANIFEST} that can be read ({problem.strerror})"
        raise UsageError(what, next_step=_made_first(folder, problem)) from problem
    except (msgspec.DecodeError, RecursionError) as problem:
        raise StaleError(
            f"{folder / MANIFEST} is damaged: {problem}", next_step=f"ls -l {shell_word(folder)}"
        ) from problem
    if not (
        isinstance(manifest, dict) and "turnmill" in _made_by(manifest) and isinstance(manifest.get("files"), list)
    ):
        raise StaleError(f"{folder / MANIFEST} was not written by turnmill", next_step=f"ls {shell_word(folder)}")
    return manifest


def _made_first(folder: Path, problem: OSError) -> str:
    """What publishes a folder that is not there; where it is and cannot be read, what shows why."""
    if not isinstance(problem, (FileNotFoundError, NotADirectoryError)):
        return f"ls -l {shell_word(folder)}"
    output = "OUT" if folder.exists() else shell_word(folder)
    return f"turnmill prepare DATA --model MODEL --output {output}"


def _made_by(manifest: dict[str, Any]) -> dict[str, Any]:
    made_by = manifest.get("made_by")
    return made_by if isinstance(made_by, dict) else {}


def verify(folder: Path, *, whole: bool = True) -> dict[str, Any]:
    """The folder's manifest, if the files are what it lists.

    Args:
        folder: a published folder, a step's or OUT.
        whole: compare hashes; False compares sizes only.

    Raises:
        UsageError: there is no manifest.
        StaleError: the manifest is not turnmill's or damaged, or files are missing or changed; the message names them.
    """
    manifest = read_manifest(folder)
    try:
        entries = msgspec.convert(manifest["files"], list[FileEntry])
    except msgspec.ValidationError as problem:
        raise StaleError(
            f"{folder / MANIFEST} lists no files: {problem}", next_step=_remade(folder, manifest)
        ) from problem
    changed = [f"{entry.path} ({what})" for entry in entries if (what := _change(folder, entry, whole))]
    if changed:
        named = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        raise StaleError(f"{folder} is not what its {MANIFEST} lists: {named}", next_step=_remade(folder, manifest))
    return manifest


def _remade(folder: Path, manifest: dict[str, Any]) -> str:
    """How a changed folder is made anew: a step's is thrown away; OUT may hold what its owner wants to look at."""
    return f"rm -r {shell_word(folder)}" if "step" in manifest else f"ls -l {shell_word(folder)}"


def _change(folder: Path, entry: FileEntry, whole: bool) -> str | None:
    path = folder / entry.path
    if not path.is_file():
        return "missing"
    found = path.stat().st_size
    if found != entry.bytes:
        return f"{found:,} bytes, expected {entry.bytes:,}"
    return "other content" if whole and sha256_of(path) != entry.sha256 else None


def made_by() -> dict[str, str]:
    """The versions that a manifest records; no fingerprint takes them."""
    import platform

    packages = ("turnmill", "jinja2", "msgspec", "numpy", "pyarrow", "tokenizers", "xxhash")
    return {"python": platform.python_version(), **{name: _version(name) for name in packages}}


@cache
def _version(package: str) -> str:
    from importlib import metadata

    return metadata.version(package)
