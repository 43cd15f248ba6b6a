"""Why a step is made anew: what its recipe has otherwise than one that is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import msgspec

from turnmill.conversation import Json
from turnmill.errors import StaleError, UsageError, quote
from turnmill.steps.manifest import Manifest, manifest_of
from turnmill.steps.step import Step

INPUTS = "its inputs"


def step_folders(cache: Path) -> Iterator[tuple[Path, Manifest]]:
    """The finished steps of a cache, by name; folders that are none are passed over."""
    for path in sorted(cache.iterdir()) if cache.is_dir() else ():
        if path.is_dir() and not path.name.startswith("."):
            try:
                yield path, manifest_of(path)
            except (UsageError, StaleError):
                continue


def changes(cache: Path, step: Step, beside: Set[str] = frozenset()) -> list[str] | None:
    """What the recipe has otherwise than the one of its name that is most like it; None where there is none.

    Args:
        cache: where finished steps lie.
        step: the recipe.
        beside: fingerprints that it is not compared with: of the same run, which has such a step for each source.
    """
    found = [
        differences(manifest.step, step)
        for _, manifest in step_folders(cache)
        if manifest.step.name == step.name and manifest.fingerprint not in (step.fingerprint, *beside)
    ]
    return min(found, key=len, default=None)


def differences(before: Step, after: Step) -> list[str]:
    """Each option that differs as `name: before → after`; the version, and the inputs in one word."""
    old, new = dict(_flat(before.params)), dict(_flat(after.params))
    said = [
        f"{name}: {_shown(old, name)} → {_shown(new, name)}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    if before.version != after.version:
        said.insert(0, f"version: {before.version} → {after.version}")
    return said + ([INPUTS] if before.inputs != after.inputs else [])


def _shown(values: Mapping[str, Json], name: str) -> str:
    return quote(values[name]) if name in values else "nothing"


def _flat(value: Json, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names of the leaves of nested objects; a list is a leaf."""
    if not isinstance(value, dict) or (path and not value):
        yield path, msgspec.to_builtins(value)
        return
    for name, inner in value.items():
        yield from _flat(inner, f"{path}.{name}" if path else name)
