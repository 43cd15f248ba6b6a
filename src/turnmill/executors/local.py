"""Tasks in spawned processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from contextvars import ContextVar
from multiprocessing.process import BaseProcess
from typing import Any

from turnmill.errors import UsageError
from turnmill.executors import executor
from turnmill.executors.inline import inline

ARROW_ALLOCATOR, LEAN_ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL", "jemalloc"
_starting = threading.Lock()


class Workers:
    """Spawned processes that run tasks until they are ended."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _prepare_worker, (_allocator(),))
        self._children: set[BaseProcess] = set()

    def submit(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Future[Any]]:
        """The results to be, in the tasks' order."""
        with _starting:  # the first task starts all workers; another run of this process may start its own
            before = set(multiprocessing.active_children())
            futures = [self._pool.submit(function, task) for task in tasks]
            self._children |= set(multiprocessing.active_children()) - before
        return futures

    def end(self, *, at_once: bool) -> None:
        """End them: idle ones, or whatever they are at."""
        if at_once:
            for child in self._children:
                child.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Kept:
    """The workers that the calls of a block share: as many as the largest of them asked for so far."""

    def __init__(self) -> None:
        self.workers: Workers | None = None

    def at_least(self, count: int) -> Workers:
        if self.workers is None or self.workers.count < count:
            self.end(at_once=False)
            self.workers = Workers(count)
        return self.workers

    def end(self, *, at_once: bool) -> None:
        if self.workers is not None:
            self.workers.end(at_once=at_once)
        self.workers = None


_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextmanager
def workers_kept() -> Iterator[None]:
    """Within the block, calls of `local` in this thread share workers, which keep what they loaded."""
    kept = _Kept()
    token = _kept.set(kept)
    try:
        yield
    except BaseException:  # do not wait for tasks that have begun
        kept.end(at_once=True)
        raise
    finally:
        _kept.reset(token)
        kept.end(at_once=False)


@executor("local")
def local(function: Callable[[Any], Any], tasks: Sequence[Any], workers: int) -> Generator[Any, None, None]:
    """Runs tasks in `workers` spawned processes; one task or one worker needs none.

    Raises:
        UsageError: a worker died, as one does that the system ends for its memory.
    """
    count = min(workers, len(tasks))
    if count <= 1:
        yield from inline(function, tasks, 1)
        return
    kept = _kept.get()
    own = Workers(count) if kept is None else kept.at_least(count)
    futures: list[Future[Any]] = []
    at_once = True
    try:
        futures = own.submit(function, tasks)
        for future in futures:
            yield future.result()
        at_once = False
    except BrokenProcessPool as problem:
        raise _worker_died(count) from problem
    except Exception:  # of a task: those that have begun may end
        at_once = False
        raise
    finally:
        for future in futures:
            future.cancel()
        if kept is None:
            own.end(at_once=at_once)


def _worker_died(workers: int) -> UsageError:
    return UsageError(
        f"a worker process was ended from outside (often: out of memory) while {workers} were at work; "
        "what was finished is kept",
        next_step=f"the same command with --workers {max(1, workers // 2)}",
    )


def _allocator() -> str | None:
    """That of Arrow's which keeps least of what is freed; None where it is not built in."""
    import pyarrow as pa

    return LEAN_ALLOCATOR if LEAN_ALLOCATOR in pa.supported_memory_backends() else None


def _prepare_worker(allocator: str | None) -> None:
    """One thread for tokenizers and Arrow; silent at Ctrl-C; no worker outlives the process that started it.

    Args:
        allocator: of Arrow, where the environment names none.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if allocator is not None:
        os.environ.setdefault(ARROW_ALLOCATOR, allocator)  # Arrow looks there once, when it is imported
    import pyarrow as pa

    pa.set_cpu_count(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
