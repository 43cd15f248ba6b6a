"""steps: graphs of steps by name, run, and what they left."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnmill.conversation import Json
from turnmill.errors import UnknownName, UsageError, quote, shell_word
from turnmill.executors import executors
from turnmill.packages import cache_directory
from turnmill.registry import Registry
from turnmill.sources import PinnedSource, sources
from turnmill.steps.build import Engine
from turnmill.steps.changes import step_folders
from turnmill.steps.graph import Node, in_order
from turnmill.steps.manifest import Manifest, manifest_of
from turnmill.steps.store import Place, StepStore
from turnmill.verbs.render import Wording
from turnmill.verbs.source_steps import DEFAULT_WORDING, Limits, nodes_of

LIST = "turnmill steps list"
graphs: Registry[Any] = Registry("graphs")
"""Functions in files of their own that give nodes: `path/to/graph.py:name`."""


def default_cache() -> Path:
    """Where finished steps of sources lie: named by content, so every project may share them."""
    return cache_directory() / "steps"


def nodes_named(
    targets: Sequence[str],
    wording: Wording = DEFAULT_WORDING,
    limits: Limits = Limits(),  # noqa: B008  # immutable
) -> list[Node]:
    """The nodes that were typed.

    Args:
        targets: a source's name (all of it), `SOURCE/STAGE`, or `FILE.py:FUNCTION`, a function without arguments that
            gives a source, a node or several.
        wording: what sources are rendered with.
        limits: how much of each source is taken.

    Raises:
        UnknownName: no such source or stage.
        UsageError: a file's function gives no nodes.
    """
    found: list[Node] = []
    for target in targets:
        found += _named(target, wording, limits)
    return found


def _named(target: str, wording: Wording, limits: Limits) -> list[Node]:
    file, mark, rest = target.rpartition(".py:")
    inner, _, stage = rest.partition("/")
    name = f"{file}{mark}{inner}"
    if mark and not isinstance(given := _called(name), PinnedSource):
        return _nodes(name, given)
    named = nodes_of(name, wording, limits).named
    if stage and stage not in named:
        raise UnknownName(f"stage of {name}", stage, named, next_step=f"turnmill steps list {shell_word(name)}")
    return [named[stage or "normalized"]]


def _called(name: str) -> Any:
    path = name.rpartition(":")[0]
    if not Path(path).is_file():
        raise UsageError(f"no such file: {path!r}; expected FILE.py:FUNCTION", next_step=LIST)
    return graphs.from_file(name)()


def _nodes(name: str, given: Any) -> list[Node]:
    nodes = [given] if isinstance(given, Node) else given
    if not isinstance(nodes, list | tuple) or not nodes or not all(isinstance(node, Node) for node in nodes):
        what = f"{name} gives {quote(given)}; expected a Node, or a list of several"
        raise UsageError(what, next_step="turnmill steps run --help")
    return list(nodes)


def all_names() -> list[str]:
    """Names of the sources, sorted."""
    return sources.names()


def engine_of(executor: str, workers: int | None, store: StepStore | None) -> Engine:
    """What runs shards."""
    return Engine(executors.get(executor), workers or os.cpu_count() or 1, store=store)


def described(node: Node, place: Place) -> dict[str, Json]:
    """A node as `steps list --json` shows it."""
    return {
        "name": node.name, "step": node.step.name, "version": node.step.version,
        "fingerprint": node.step.fingerprint, "needs": [need.name for need in node.needs],
        "built": node.is_built(place.folder, place.store), "folder": str(node.folder(place.folder)),
    }  # fmt: skip


def record(folder: Path) -> dict[str, Json]:
    """The artifact record of a finished step, and which steps beside it its inputs are.

    Raises:
        UsageError: no finished step.
    """
    manifest = manifest_of(folder)
    beside = {other.fingerprint: path.name for path, other in step_folders(folder.absolute().parent)}
    return {
        "name": manifest.step.name,
        "version": manifest.step.version,
        "fingerprint": manifest.fingerprint,
        "folder": str(folder),
        "params": _shown(manifest.step.params),
        "inputs": [{"fingerprint": one, "folder": beside.get(one)} for one in manifest.inputs],
        "counters": manifest.counters,
        "result": manifest.result,
        "files": [{"path": one.path, "bytes": one.bytes, "rows": one.rows} for one in manifest.files],
        "made_by": dict(manifest.made_by),
    }


def _shown(params: dict[str, Json]) -> Json:
    shown: Json = msgspec.to_builtins(params)
    return shown


def folder_of(target: str, place: Place, wording: Wording = DEFAULT_WORDING) -> Path:
    """The folder that was typed: a step's own, or that of a node, fetched where a store has it.

    Raises:
        UsageError: the node is not built.
    """
    if (Path(target) / "manifest.json").is_file():
        return Path(target)
    node = nodes_named([target], wording)[0]
    if place.store is not None:
        place.store.fetch_step(node.step.folder_name)
    if not node.is_built(place.folder):
        raise UsageError(f"{node.name} is not built", next_step=f"turnmill steps run {target}")
    return node.folder(place.folder)


def listed(nodes: Iterable[Node], place: Place) -> list[dict[str, Json]]:
    """The nodes and what they need, described."""
    return [described(node, place) for node in in_order(nodes)]


def counters_of(node: Node, cache: Path) -> dict[str, Json]:
    """Counters of a built node; nothing of another."""
    return manifest(node, cache).counters if node.is_built(cache) else {}


def manifest(node: Node, cache: Path) -> Manifest:
    """The record of a built node."""
    return manifest_of(node.folder(cache))
