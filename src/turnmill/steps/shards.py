"""One shard of a step: run into a draft of its own, visible when whole, never run twice."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from turnmill.conversation import Json
from turnmill.files.disk import sync_names, sync_tree, write_whole, writing
from turnmill.files.inventory import FileEntry, inventory, json_file

RESULT = "result.json"


class ShardResult(msgspec.Struct, frozen=True):
    """What a shard reports beside the files it wrote."""

    counters: dict[str, int] = {}
    extra: Json = None
    """Whatever the step's finish needs: small, JSON."""
    files: tuple[FileEntry, ...] = ()
    """The files it wrote, relative to its folder; filled in by the runner."""


RunShard = Callable[[Any, Path], ShardResult]
"""(shard, folder) → its result; writes its files into the folder. Picklable, and a function of the shard alone."""


class ShardTask(msgspec.Struct, frozen=True):
    """One shard with the folder it becomes."""

    run_shard: RunShard
    shard: Any
    folder: Path


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
def _collecting_rarely() -> Iterator[None]:
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
        UsageError: its files cannot be written.
    """
    stored = task.folder / RESULT
    if stored.exists():
        return msgspec.json.decode(stored.read_bytes(), type=ShardResult)
    with writing(task.folder):
        draft = Path(tempfile.mkdtemp(prefix=f".{task.folder.name}.", dir=task.folder.parent))
        try:
            with _collecting_rarely():
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
    return result
