"""The manifest of a step's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from turnmill.conversation import Json
from turnmill.errors import StaleError, shell_word
from turnmill.files.inventory import MANIFEST, FileEntry, read_manifest, verify
from turnmill.steps.step import Step


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a step's folder is, and what is in it."""

    fingerprint: str
    step: Step
    inputs: tuple[str, ...]
    counters: dict[str, Json]
    """Sums over the shards, and what the finish of the step added."""
    files: tuple[FileEntry, ...]
    made_by: dict[str, str]
    """Versions of turnmill, Python and libraries: recorded, in no fingerprint."""
    result: Json = None
    """What the step made, of a step that says so: see `read_artifact`."""


def manifest_of(folder: Path) -> Manifest:
    """The manifest of a step's folder.

    Raises:
        UsageError: the folder has none.
        StaleError: it is not a step's.
    """
    try:
        return msgspec.convert(read_manifest(folder), Manifest)
    except msgspec.ValidationError as problem:
        raise StaleError(f"{folder} has no step's manifest: {problem}") from problem


Result = TypeVar("Result")


class Artifact(NamedTuple, Generic[Result]):
    """What a finished step left: its folder, its record, and what it says it made."""

    folder: Path
    manifest: Manifest
    result: Result


def read_artifact(folder: str | Path, kind: type[Result]) -> Artifact[Result]:
    """The artifact in a step's folder.

    Args:
        folder: of the step.
        kind: a `msgspec.Struct` that its result is of.

    Raises:
        UsageError: there is no finished step.
        StaleError: its result is not of that kind, or it says none.
    """
    manifest = manifest_of(Path(folder))
    try:
        return Artifact(Path(folder), manifest, msgspec.convert(manifest.result, kind))
    except msgspec.ValidationError as problem:
        what = f"{folder} holds step {manifest.step.name!r}, whose result is no {kind.__name__}: {problem}"
        raise StaleError(what, next_step=f"turnmill steps show {shell_word(folder)}") from problem


def built(folder: Path, step: Step) -> bool:
    """Whether the folder is there and holds what the step makes (sizes are compared, not hashes).

    Raises:
        StaleError: it is there and is not what its manifest lists, or another step's.
    """
    if not folder.exists():
        return False
    remade = f"rm -r {shell_word(folder)}"
    if not (folder / MANIFEST).exists():
        raise StaleError(f"{folder} is no whole step: it has no {MANIFEST}", next_step=remade)
    try:
        verify(folder, whole=False)
        found = manifest_of(folder).fingerprint
    except StaleError as fault:
        raise StaleError(fault.message, next_step=remade) from fault
    if found != step.fingerprint:
        what = f"{folder} was made by step {found[:12]}…; expected {step.fingerprint[:12]}…"
        raise StaleError(what, next_step=remade)
    return True
