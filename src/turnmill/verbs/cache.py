"""cache: the steps that runs left, what made each, and whether they are whole."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turnmill.conversation import Json
from turnmill.errors import StaleError, UsageError, shell_word
from turnmill.files.disk import beside, writing
from turnmill.files.inventory import is_published, made_by, read_manifest, verify
from turnmill.steps.changes import differences, step_folders
from turnmill.steps.manifest import Manifest, manifest_of
from turnmill.steps.step import FOLDER_DIGITS

DAY_S = 86_400
STEP_FOLDER = re.compile(rf"[^.].*-[0-9a-f]{{{FOLDER_DIGITS}}}")
"""A step's name and fingerprint."""


class Entry(NamedTuple):
    """One finished step of a cache."""

    folder: Path
    manifest: Manifest

    @property
    def bytes(self) -> int:
        """Of its files."""
        return sum(file.bytes for file in self.manifest.files)

    @property
    def days(self) -> float:
        """Since it was made."""
        return max(0.0, time.time() - self.folder.stat().st_mtime) / DAY_S

    @property
    def as_json(self) -> dict[str, Json]:
        """What is listed of it."""
        step = self.manifest.step
        return {
            "step": step.name, "version": step.version, "fingerprint": self.manifest.fingerprint, "bytes": self.bytes,
            "files": len(self.manifest.files), "days": round(self.days, 2), "folder": str(self.folder),
        }  # fmt: skip


def cache_of(path: Path) -> Path:
    """The cache that was named: itself, or the one beside OUT.

    Raises:
        UsageError: neither is there.
    """
    cache = beside(path.absolute(), "steps") if is_published(path) and "step" not in read_manifest(path) else path
    if not cache.is_dir():
        raise UsageError(
            f"no cache at {cache}; expected OUT, or a folder of steps", next_step=f"ls -a {shell_word(path.parent)}"
        )
    return cache


def entries(cache: Path) -> list[Entry]:
    """The finished steps of a cache."""
    return [Entry(folder, manifest) for folder, manifest in step_folders(cache)]


def used_by(folders: Sequence[Path]) -> set[str]:
    """Fingerprints of the steps that prepared folders were made of.

    Raises:
        UsageError: a folder was not published by `prepare`.
    """
    found: set[str] = set()
    for folder in folders:
        steps = read_manifest(folder).get("steps")
        if not isinstance(steps, list):
            raise UsageError(f"{folder} is not what `prepare` published", next_step=f"ls {shell_word(folder)}")
        found |= {step["fingerprint"] for step in steps}
    return found


def explain(out: Path, cache: Path) -> list[dict[str, Json]]:
    """Of each step of OUT, what is otherwise than in the most like one beside it: `{"step", "fingerprint", "changed"}`.

    `changed` is None where there is no other step of the name, and where the step is gone from the cache.
    """
    every = entries(cache)
    by_fingerprint = {entry.manifest.fingerprint: entry.manifest for entry in every}
    wanted = used_by([out])
    told: list[dict[str, Json]] = []
    for step in read_manifest(out)["steps"]:
        own = by_fingerprint.get(step["fingerprint"])
        others = [
            entry.manifest.step
            for entry in every
            if entry.manifest.step.name == step["name"] and entry.manifest.fingerprint not in wanted
        ]
        changed = min((differences(other, own.step) for other in others), key=len, default=None) if own else None
        told.append({**step, "is_cached": own is not None, "changed": changed})
    return told


def damaged(cache: Path) -> dict[str, str]:
    """Step folder → what is wrong with it; every file is hashed, and what lost its manifest counts too."""
    named = {path for path in cache.iterdir() if path.is_dir() and STEP_FOLDER.fullmatch(path.name)}
    found: dict[str, str] = {}
    for folder in sorted(named | {entry.folder for entry in entries(cache)}):
        try:
            verify(folder)
            manifest_of(folder)
        except (StaleError, UsageError) as fault:
            found[str(folder)] = fault.message
    return found


def other_versions(cache: Path) -> dict[str, list[str]]:
    """`package version` → steps that were made with it, where another one is installed now."""
    now = made_by()
    found: dict[str, list[str]] = {}
    for entry in entries(cache):
        for name, version in entry.manifest.made_by.items():
            if now.get(name) not in (None, version):
                found.setdefault(f"{name} {version} (now {now[name]})", []).append(entry.manifest.step.name)
    return found


def prunable(cache: Path, keep: Sequence[Path], older_days: float) -> list[Entry]:
    """The steps that no kept folder was made of, and that are older than so many days.

    Raises:
        UsageError: a kept folder was not published by `prepare`.
    """
    used = used_by(keep)
    return [entry for entry in entries(cache) if entry.manifest.fingerprint not in used and entry.days >= older_days]


def prune(chosen: Sequence[Entry]) -> int:
    """Remove steps; gives the bytes of their files, which stay where OUT links to them."""
    freed = 0
    for entry in chosen:
        freed += entry.bytes
        gone = beside(entry.folder, "pruned")
        with writing(entry.folder):
            entry.folder.rename(gone)  # nobody takes a half-removed step for a whole one
            shutil.rmtree(gone)
    return freed
