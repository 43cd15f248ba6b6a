"""Steps that have run, and what builds them: once, or taken from the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec

from turnmill.conversation import Json
from turnmill.executors import Executor
from turnmill.files.inventory import verify
from turnmill.steps.build import Engine, Finish, Progress, build, no_finish
from turnmill.steps.changes import INPUTS, changes
from turnmill.steps.manifest import Manifest, manifest_of
from turnmill.steps.shards import RESULT, RunShard, ShardResult, shard_folder
from turnmill.steps.step import Step


@dataclass(frozen=True, slots=True)
class Built:
    """A step that has run: its folder, its recipe, and what its shards reported."""

    step: Step
    folder: Path
    results: tuple[ShardResult, ...]

    @property
    def counters(self) -> dict[str, Json]:
        """Sums over the shards."""
        return self.manifest.counters

    @property
    def manifest(self) -> Manifest:
        """The step's manifest."""
        return manifest_of(self.folder)

    def file(self, name: str) -> tuple[Path, ...]:
        """That file of every shard, in order."""
        return tuple(shard_folder(self.folder, number) / name for number in range(len(self.results)))


class Builder:
    """Builds steps in one cache with one engine."""

    def __init__(self, cache: Path, engine: Engine) -> None:
        self.cache, self._engine = cache, engine
        self._used: set[str] = set()
        self.remade: dict[str, list[str]] = {}
        """Step → what its recipe has otherwise than the most like one that was there."""

    @property
    def partitions(self) -> int:
        """How many partitions are asked for; 0: as many as the rows need."""
        return self._engine.partitions

    def has(self, step: Step) -> bool:
        """Whether the step is there, here or in the run's store: what it would be made of is not needed then."""
        store = self._engine.store
        there = (self.cache / step.folder_name).exists()
        return there or (store is not None and store.has_step(step.folder_name))

    def build(
        self,
        step: Step,
        tasks: Sequence[Any],
        run_shard: RunShard,
        finish: Finish = no_finish,
        rows: Sequence[int] | None = None,
        executor: Executor | None = None,
    ) -> Built:
        """The step, run now or taken from the cache; what is taken is hashed first: it will be trusted blindly.

        Args:
            step: the recipe.
            tasks: its shards.
            run_shard: what runs one.
            finish: what ends the step.
            rows: of each task, for progress in rows.
            executor: what runs its shards; None = that of the run.
        """
        self._compare(step)
        is_reused = (self.cache / step.folder_name).exists()
        engine = self._engine._replace(progress=_in_rows(self._engine.progress, rows or [1] * len(tasks)))
        if executor is not None:
            engine = engine._replace(executor=executor)
        folder = build(step, self.cache, tasks, run_shard, finish=finish, engine=engine)
        if is_reused:
            verify(folder)
        results = tuple(
            msgspec.json.decode((shard_folder(folder, number) / RESULT).read_bytes(), type=ShardResult)
            for number in range(len(tasks))
        )
        return Built(step, folder, results)

    def _compare(self, step: Step) -> None:
        self._used.add(step.fingerprint)
        if (self.cache / step.folder_name).exists():
            return
        changed = changes(self.cache, step, self._used)
        if changed and changed != [INPUTS]:
            self.remade[step.name] = changed


def _in_rows(progress: Progress | None, rows: Sequence[int]) -> Progress | None:
    """Progress that counts the rows of finished shards in place of the shards."""
    if progress is None:
        return None
    done_rows = [0, *accumulate(rows)]
    return lambda name, done, _: progress(name, done_rows[done], done_rows[-1])
