"""pack: examples into rows of `fit.max_tokens`, as a plan for the first epoch and as packed Parquet."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from turnmill.files.examples import Examples
from turnmill.files.packed import is_weighted, write_packed, write_plan
from turnmill.options import Pack
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.tokens.pack import plan
from turnmill.verbs.select import ranks

VERSION = 1
PLAN = "plans/epoch-0000.arrow"


class PackTask(NamedTuple):
    """All examples of one side."""

    side: str
    examples: tuple[str, ...]
    max_tokens: int
    pack: Pack
    seed: int
    order: str | None = None
    """A decision whose ranks the packs follow; None: as `pack.order` says."""


def step_of(examples: list[Step], options: Pack, max_tokens: int, seed: int) -> Step:
    """The recipe of plans and packs, of both sides."""
    params = {**msgspec.to_builtins(dataclasses.asdict(options)), "max_tokens": max_tokens, "seed": seed}
    return Step("pack", VERSION, params, tuple(step.fingerprint for step in examples))


def run_shard(task: PackTask, folder: Path) -> ShardResult:
    """Write one side's plan and packed rows."""
    examples = Examples([Path(path) for path in task.examples])
    lengths = examples.lengths()
    packs = _packs(task, lengths)
    (folder / "plans").mkdir()
    write_plan(folder / PLAN, packs)
    if task.pack.materialise:
        (folder / "packed").mkdir()
        write_packed(folder / "packed", examples, packs)
    counters = {f"{task.side}/packs": len(packs), f"{task.side}/packed-tokens": sum(lengths)}
    extra: dict[str, Any] = {"weighted": is_weighted(examples), "lengths": _by_source(examples)}
    return ShardResult(counters, extra)


def _packs(task: PackTask, lengths: list[int]) -> list[list[int]]:
    if task.order is None:
        return plan(lengths, task.max_tokens, task.pack, task.seed)
    order = np.argsort(ranks(Path(task.order)), kind="stable").tolist()
    kept = dataclasses.replace(task.pack, order="kept")
    packs = plan([lengths[number] for number in order], task.max_tokens, kept, task.seed)
    return [[order[place] for place in pack] for pack in packs]


def _by_source(examples: Examples) -> dict[str, list[tuple[int, int]]]:
    """Source → (tokens, how many examples have so many), by length."""
    import pyarrow.compute as pc

    lengths: dict[str, Counter[int]] = {}
    for batch in examples.batches():
        counted = pc.list_value_length(batch.column("input_ids")).to_pylist()
        for source, length in zip(batch.column("source").to_pylist(), counted, strict=True):
            lengths.setdefault(source, Counter())[length] += 1
    return {source: sorted(found.items()) for source, found in sorted(lengths.items())}
