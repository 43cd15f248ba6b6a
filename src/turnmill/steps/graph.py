"""Graphs of steps: what is built of what, run by dependency, each step once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from turnmill.errors import UsageError
from turnmill.steps.build import INLINE, Engine, Finish, build, no_finish
from turnmill.steps.manifest import built
from turnmill.steps.shards import RunShard
from turnmill.steps.step import Step
from turnmill.steps.store import StepStore

MAX_CONCURRENT = 2

PlanShards = Callable[[tuple[Path, ...]], Sequence[Any]]
"""Folders of the nodes it needs, in order → its shards: the same for the same folders."""


@dataclass(frozen=True, eq=False)
class Node:
    """A step, the steps that it is built of, and how."""

    name: str
    """For people: `superior-reasoning/check`."""
    step: Step
    """Its recipe; the fingerprints of what it needs are among its inputs."""
    plan: PlanShards
    run_shard: RunShard
    needs: tuple[Node, ...] = ()
    finish: Finish = no_finish

    def __post_init__(self) -> None:
        missing = [need.name for need in self.needs if need.step.fingerprint not in self.step.inputs]
        if missing:
            raise ValueError(f"step {self.name} needs {', '.join(missing)}, which are not among its recipe's inputs")

    def folder(self, cache: Path) -> Path:
        """Where its output lies, or will."""
        return cache.absolute() / self.step.folder_name

    def is_built(self, cache: Path, store: StepStore | None = None) -> bool:
        """Whether its output is there, or in the store.

        Raises:
            StaleError: something else is there.
        """
        return built(self.folder(cache), self.step) or (store is not None and store.has_step(self.step.folder_name))


State = Literal["built", "made", "to-make", "failed", "not-run"]
"""There already; made now; would be made; raised; waits for one that failed."""


class Outcome(NamedTuple):
    """What became of a node in a run."""

    node: Node
    state: State
    seconds: float = 0.0
    error: Exception | None = None
    because: str | None = None
    """Of a node that was not run: the failed one that it needs."""


Tell = Callable[[Outcome], None]


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """The nodes and all that they need, each once, what is needed first."""
    found: dict[str, Node] = {}
    for node in nodes:
        stack = [(node, iter(node.needs))]
        while stack:
            current, rest = stack[-1]
            below = next((need for need in rest if need.step.fingerprint not in found), None)
            if below is not None:
                stack.append((below, iter(below.needs)))
                continue
            found.setdefault(current.step.fingerprint, current)
            stack.pop()
    return list(found.values())


def pruned(nodes: Iterable[Node], cache: Path, store: StepStore | None = None) -> list[Node]:
    """Those of `in_order` that a run looks at: what only a built node needs is left out.

    Raises:
        StaleError: a folder is not what its recipe makes.
    """
    wanted: dict[str, Node] = {}
    open_nodes = list(nodes)
    while open_nodes:
        node = open_nodes.pop()
        if node.step.fingerprint in wanted:
            continue
        wanted[node.step.fingerprint] = node
        if not node.is_built(cache, store):
            open_nodes.extend(node.needs)
    return [node for node in in_order(wanted.values()) if node.step.fingerprint in wanted]


def run(
    nodes: Sequence[Node],
    cache: Path,
    *,
    engine: Engine = INLINE,
    max_concurrent: int = MAX_CONCURRENT,
    dry_run: bool = False,
    tell: Tell = lambda outcome: None,
) -> list[Outcome]:
    """Build nodes and what they need; a node that fails stops those that need it, and no other.

    Args:
        nodes: what is wanted.
        cache: the folder of step folders.
        engine: what runs shards.
        max_concurrent: how many nodes at once.
        dry_run: look, and build nothing.
        tell: called with each outcome when it is known, in this thread.

    Returns:
        An outcome a node that was looked at, what is needed first.

    Raises:
        UsageError: `max_concurrent` is not at least 1.
        StaleError: a folder is not what its recipe makes.
    """
    if max_concurrent < 1:
        raise UsageError(f"max_concurrent is {max_concurrent}; expected at least 1", next_step="--max-concurrent 1")
    order = pruned(nodes, cache, engine.store)
    if dry_run:
        planned = [Outcome(node, "built" if node.is_built(cache, engine.store) else "to-make") for node in order]
        for outcome in planned:
            tell(outcome)
        return planned
    done: dict[str, Outcome] = {}
    with ThreadPoolExecutor(max_concurrent, thread_name_prefix="turnmill-step") as pool:
        for outcome in _finished(order, done, pool, cache, engine):
            done[outcome.node.step.fingerprint] = outcome
            tell(outcome)
    return [done[node.step.fingerprint] for node in order]


def _finished(
    order: Sequence[Node], done: Mapping[str, Outcome], pool: ThreadPoolExecutor, cache: Path, engine: Engine
) -> Iterator[Outcome]:
    """Outcomes as they come; the caller enters each into `done` before it asks for the next."""
    waiting = list(order)
    looked_at = {node.step.fingerprint for node in order}
    running: dict[Future[Outcome], Node] = {}
    while waiting or running:
        for node in list(waiting):
            needs = [need.step.fingerprint for need in node.needs if need.step.fingerprint in looked_at]
            if not all(need in done for need in needs):
                continue
            waiting.remove(node)
            failed = next((done[need] for need in needs if done[need].state in ("failed", "not-run")), None)
            if failed is not None:
                yield Outcome(node, "not-run", because=failed.because or failed.node.name)
            else:
                running[pool.submit(_build, node, cache, engine)] = node
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            del running[future]
            yield future.result()


def _build(node: Node, cache: Path, engine: Engine) -> Outcome:
    started = time.monotonic()
    try:
        is_there = node.is_built(cache, engine.store)
        if not is_there:
            _fetch(node.needs, engine.store)
        shards = [] if is_there else node.plan(tuple(need.folder(cache) for need in node.needs))
        build(node.step, cache, shards, node.run_shard, finish=node.finish, engine=engine)
        if is_there:
            return Outcome(node, "built")
    except Exception as error:
        return Outcome(node, "failed", time.monotonic() - started, error)
    return Outcome(node, "made", time.monotonic() - started)


def _fetch(needs: Sequence[Node], store: StepStore | None) -> None:
    if store is not None:
        for need in needs:
            store.fetch_step(need.step.folder_name)


def check_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Raise what the first failed node raised.

    Raises:
        Exception: as it was; the outcomes of all nodes were told before.
    """
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error


def mermaid(nodes: Iterable[Node], state: Callable[[Node], str] = lambda node: "") -> str:
    """The graph as a Mermaid flowchart; `state` adds a word to each node's name."""
    order = in_order(nodes)
    number = {node.step.fingerprint: f"n{place}" for place, node in enumerate(order)}
    lines = ["flowchart LR"]
    for node in order:
        word = state(node)
        shown = f"{node.name}<br/>{node.step.fingerprint[:12]}" + (f"<br/>{word}" if word else "")
        lines.append(f'  {number[node.step.fingerprint]}["{shown}"]')
    for node in order:
        own = number[node.step.fingerprint]
        lines += [f"  {number[need.step.fingerprint]} --> {own}" for need in node.needs]
    return "\n".join(lines)
