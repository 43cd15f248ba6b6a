"""Building a step's folder: once, whatever is interrupted, whoever else builds it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.executors import Executor
from turnmill.executors.inline import inline
from turnmill.files.disk import beside, sync_names, sync_tree, write_whole, writing
from turnmill.files.inventory import MANIFEST, inventory, json_file, made_by
from turnmill.steps.lease import lease
from turnmill.steps.manifest import Manifest, built
from turnmill.steps.shards import RESULT, RunShard, ShardResult, ShardTask, clean, run_task, shard_folder, sums
from turnmill.steps.step import Step
from turnmill.steps.store import StepStore


class Finished(NamedTuple):
    """What the finish of a step says of the whole."""

    counters: Mapping[str, Json]
    """For the manifest, over the shards' sums."""
    result: msgspec.Struct
    """What the step made, for `read_artifact`."""


Finish = Callable[[Path, Sequence[ShardResult]], Mapping[str, Json] | Finished]
"""(draft, results in shard order) → counters for the manifest, over the shards' sums, or these and a typed result; may
write files of the whole step into the draft, and raise `HealthError`: then nothing is published, and the finished
shards wait for the next run."""

Progress = Callable[[str, int, int], None]
"""(step's name, shards done, shards in all), at the start and after each shard."""


class Engine(NamedTuple):
    """What runs the shards of every step of a run; no fingerprint takes it."""

    executor: Executor = inline
    workers: int = 1
    """How many shards at once, where the executor can."""
    progress: Progress | None = None
    store: StepStore | None = None
    """Where finished steps are kept beside the disk."""
    partitions: int = 0
    """Ranges of keys that a step over all rows looks at on their own; 0: as many as so many rows need."""


INLINE = Engine()


def no_finish(draft: Path, results: Sequence[ShardResult]) -> dict[str, Json]:
    """The finish of a step that only has shards."""
    return {}


def build(
    step: Step,
    cache: Path,
    shards: Sequence[Any],
    run_shard: RunShard,
    *,
    finish: Finish = no_finish,
    engine: Engine = INLINE,
) -> Path:
    """The folder that holds the step's output, made now unless it is there already.

    The bytes in it depend on the step alone: not on the executor, on interruptions, or on who else builds it.

    Args:
        step: the recipe.
        cache: the folder of step folders.
        shards: the work, in order; the same for the same step.
        run_shard: see `RunShard`.
        finish: see `Finish`.
        engine: what runs the shards.

    Raises:
        UsageError: the cache cannot be written, or a worker died.
        HealthError: from `finish`.
        StaleError: the folder is there, but not what its manifest lists.
    """
    folder = Path(os.path.abspath(cache)) / step.folder_name
    if _is_there(folder, step, engine.store):
        return folder
    with lease(folder) as held:
        if _is_there(folder, step, engine.store):
            return folder
        draft = beside(folder, "draft")
        with writing(draft):
            clean(draft, len(shards))
        tasks = [
            ShardTask(run_shard, shard, shard_folder(draft, index), engine.store) for index, shard in enumerate(shards)
        ]
        results = _run_shards(step, tasks, engine)
        with writing(draft):
            clean(draft, len(shards))
            held.check()
            _publish(step, draft, folder, results, finish)
        if engine.store is not None:
            engine.store.push_step(folder.name)
    return folder


def _is_there(folder: Path, step: Step, store: StepStore | None) -> bool:
    """Whether the folder is there, or was fetched now."""
    return built(folder, step) or (store is not None and store.fetch_step(folder.name) and built(folder, step))


def _run_shards(step: Step, tasks: Sequence[ShardTask], engine: Engine) -> list[ShardResult]:
    finished = {task.folder for task in tasks if (task.folder / RESULT).exists()}
    fresh = engine.executor(run_task, [task for task in tasks if task.folder not in finished], engine.workers)
    tell = engine.progress or (lambda name, done, total: None)
    tell(step.name, 0, len(tasks))
    results: list[ShardResult] = []
    with closing(fresh):
        for task in tasks:
            results.append(run_task(task) if task.folder in finished else next(fresh))
            if engine.store is not None and not task.folder.exists():  # it was run on another machine
                engine.store.fetch_shard(task.folder)
            tell(step.name, len(results), len(tasks))
    return results


def _publish(step: Step, draft: Path, folder: Path, results: Sequence[ShardResult], finish: Finish) -> None:
    said = finish(draft, results)
    own, made = said if isinstance(said, Finished) else (said, None)
    counters = {**dict(sorted(sums(results).items())), **own}
    manifest = Manifest(step.fingerprint, step, step.inputs, counters, inventory(draft), made_by())
    if made is not None:
        manifest = msgspec.structs.replace(manifest, result=msgspec.to_builtins(made))
    write_whole(draft / MANIFEST, json_file(msgspec.to_builtins(manifest)))
    sync_tree(draft)
    os.rename(draft, folder)
    sync_names(folder.parent)
