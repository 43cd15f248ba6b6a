"""One shard of a step: run into a draft of its own, visible when whole, never run twice."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from turnmill.conversation import Json
from turnmill.files.disk import sync_names, sync_tree, write_whole, writing
from turnmill.files.inventory import FileEntry, inventory, json_file
from turnmill.steps.store import RECORD_OF_SHARD, StepStore

RESULT = RECORD_OF_SHARD


class ShardResult(msgspec.Struct, frozen=True):
    """What a shard reports beside the files it wrote."""

    counters: dict[str, int] = {}
    extra: Json = None
    """Whatever the step's finish needs: small, JSON."""
    files: tuple[FileEntry, ...] = ()
    """The files it wrote, relative to its folder; filled in by the runner."""


def sums(results: Iterable[ShardResult]) -> dict[str, int]:
    """Counters over shards."""
    total: Counter[str] = Counter()
    for result in results:
        total.update(result.counters)
    return dict(total)


RunShard = Callable[[Any, Path], ShardResult]
"""(shard, folder) → its result; writes its files into the folder. Picklable, and a function of the shard alone."""


class ShardTask(msgspec.Struct, frozen=True):
    """One shard with the folder it becomes."""

    run_shard: RunShard
    shard: Any
    folder: Path
    store: StepStore | None = None
    """Where finished shards are kept beside the disk, and the steps before come from."""


def shard_folder(step_folder: Path, index: int) -> Path:
    """Where a shard's files lie in its step's folder."""
    return step_folder / "shards" / f"{index:05d}"


def clean(step_folder: Path, shards: int) -> None:
    """Keep of a step's draft its finished shards alone."""
    kept = {shard_folder(step_folder, index) for index in range(shards)}
    root = shard_folder(step_folder, 0).parent
    root.mkdir(parents=True, exist_ok=True)
    leftovers = [path for path in (*step_folder.iterdir(), *root.iterdir()) if path not in kept | {root}]
    for path in leftovers:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Search for circles of objects a hundred times less often: rows are many objects, and hang in none."""
    thresholds = gc.get_threshold()
    gc.set_threshold(thresholds[0] * 100, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def run_task(task: ShardTask) -> ShardResult:
    """The shard's result: run now, or read where it was finished before.

    Raises:
        UsageError: its files cannot be written, or its store cannot.
        TypeError: its function gives no result.
    """
    store = task.store
    if not (task.folder / RESULT).exists() and not (store is not None and store.fetch_shard(task.folder)):
        if store is not None:
            store.fetch_inputs(task.shard)
        _run(task)
        if store is not None:
            store.push_shard(task.folder)
    return msgspec.json.decode((task.folder / RESULT).read_bytes(), type=ShardResult)


def _run(task: ShardTask) -> None:
    """Run the shard into a draft of its own, and rename that when it is whole."""
    stored = task.folder / RESULT
    with writing(task.folder):
        task.folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{task.folder.name}.", dir=task.folder.parent))
        try:
            with collecting_rarely():
                result = task.run_shard(task.shard, draft)
            if not isinstance(result, ShardResult):
                raise TypeError(f"{task.run_shard} gave {type(result).__name__}; expected a ShardResult")
            result = msgspec.structs.replace(result, files=inventory(draft))
            write_whole(draft / RESULT, json_file(msgspec.to_builtins(result)))
            sync_tree(draft)
            os.chmod(draft, 0o755)  # mkdtemp's folders are the owner's alone
            if not stored.exists():  # a worker that outlived its killed run may have been first, with the same bytes
                os.rename(draft, task.folder)
            sync_names(task.folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
