"""pack: examples into rows of `fit.max_tokens`, as a plan for the first epoch and as packed Parquet."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from turnmill.files.arrays import in_files
from turnmill.files.examples import Examples, token_counts
from turnmill.files.packed import is_weighted, map_plan, write_packed, write_plan
from turnmill.files.selection import train_ranks
from turnmill.mix import Share, Size, shares
from turnmill.options import Mix, Pack
from turnmill.sorted_parts import Allocate, parts_of
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.tokens.epochs import Epochs
from turnmill.tokens.pack import Plan
from turnmill.verbs.select_rows import CONTROL

Weights = Sequence[tuple[str, float | None]]

VERSION = 2
PLAN = "plans/epoch-{:04d}.arrow"
MIXED_SIDES = ("train", CONTROL)
"""Whose epochs follow the weights of the sources; what is held out is seen once."""


class PackTask(NamedTuple):
    """All examples of one side."""

    side: str
    examples: tuple[str, ...]
    max_tokens: int
    pack: Pack
    seed: int
    order: str | None = None
    """A decision whose ranks the packs follow; None: as `pack.order` says."""
    mix: Mix = Mix()
    weights: tuple[tuple[str, float | None], ...] = ()
    """Each source with its weight, in the order of reading."""


def step_of(examples: Sequence[Step], options: Pack, max_tokens: int, seed: int, *, mix: Mix, weights: Weights) -> Step:
    """The recipe of plans and packs, of all sides."""
    params = {**msgspec.to_builtins(dataclasses.asdict(options)), "max_tokens": max_tokens, "seed": seed}
    if mix != Mix() or any(weight is not None for _, weight in weights):
        params["mix"] = {**msgspec.to_builtins(dataclasses.asdict(mix)), "weights": [list(pair) for pair in weights]}
    return Step("pack", VERSION, params, tuple(step.fingerprint for step in examples))


def run_shard(task: PackTask, folder: Path) -> ShardResult:
    """Write one side's plans, and the packed rows of its first epoch."""
    examples = Examples([Path(path) for path in task.examples])
    epochs = _epochs(task, examples, in_files(folder))
    (folder / "plans").mkdir()
    for epoch in range(task.mix.epochs if task.side in MIXED_SIDES else 1):
        write_plan(folder / PLAN.format(epoch), epochs.plan(epoch))
    first = map_plan(folder / PLAN.format(0))
    if task.pack.materialise:
        (folder / "packed").mkdir()
        write_packed(folder / "packed", examples, first)
    counters = {f"{task.side}/packs": first.packs, f"{task.side}/packed-tokens": _tokens(epochs, first)}
    extra: dict[str, Any] = {
        "weighted": is_weighted(examples),
        "lengths": _by_source(examples),
        "mix": None if epochs.mixed is None else [share.as_json for share in epochs.mixed],
    }
    return ShardResult(counters, extra)


def _tokens(epochs: Epochs, plan: Plan) -> int:
    return sum(int(epochs.lengths[plan.numbers[part]].sum()) for part in parts_of(len(plan.numbers)))


def _epochs(task: PackTask, examples: Examples, allocate: Allocate) -> Epochs:
    ranks = None if task.order is None else train_ranks(Path(task.order), allocate)
    lengths = examples.lengths(allocate)
    return Epochs(lengths, task.max_tokens, task.pack, task.seed, _mixed(task, examples), ranks, allocate)


def _mixed(task: PackTask, examples: Examples) -> list[Share] | None:
    """What each source gives to an epoch; None where that is every example once."""
    is_plain = task.mix.max_passes is None and all(weight is None for _, weight in task.weights)
    if is_plain or task.side not in MIXED_SIDES:
        return None
    return shares(_sizes(task, examples), dict(task.weights), task.mix)


def _sizes(task: PackTask, examples: Examples) -> dict[str, Size]:
    """What each source has on this side."""
    sums = {name: np.zeros(3, dtype=np.int64) for name, _ in task.weights}
    for batch in examples.batches():
        names = np.array(batch.column("source").to_pylist(), dtype=object)
        tokens, trained = token_counts(batch)
        for name in set(names.tolist()):
            own = names == name
            sums[name] += [own.sum(), tokens[own].sum(), trained[own].sum()]
    return {name: Size(*found.tolist()) for name, found in sums.items()}


def _by_source(examples: Examples) -> dict[str, list[tuple[int, int]]]:
    """Source → (tokens, how many examples have so many), by length."""
    import pyarrow.compute as pc

    lengths: dict[str, Counter[int]] = {}
    for batch in examples.batches():
        counted = pc.list_value_length(batch.column("input_ids")).to_pylist()
        for source, length in zip(batch.column("source").to_pylist(), counted, strict=True):
            lengths.setdefault(source, Counter())[length] += 1
    return {source: sorted(found.items()) for source, found in sorted(lengths.items())}
