"""Tasks in spawned processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Any

from turnmill.errors import UsageError
from turnmill.executors import executor
from turnmill.executors.inline import inline

_starting = threading.Lock()


@executor("local")
def local(function: Callable[[Any], Any], tasks: Sequence[Any], workers: int) -> Generator[Any, None, None]:
    """Runs tasks in `workers` spawned processes; one task or one worker needs none.

    Raises:
        UsageError: a worker died, as one does that the system ends for its memory.
    """
    workers = min(workers, len(tasks))
    if workers <= 1:
        yield from inline(function, tasks, 1)
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _prepare_worker)
    children: set[BaseProcess] = set()
    try:
        with _starting:  # the first task starts all workers; another run of this process may start its own
            before = set(multiprocessing.active_children())
            futures = [pool.submit(function, task) for task in tasks]
            children = set(multiprocessing.active_children()) - before
        for future in futures:
            yield future.result()
    except BrokenProcessPool as problem:
        raise _worker_died(workers) from problem
    except (KeyboardInterrupt, SystemExit, GeneratorExit):  # do not wait for tasks that have begun
        for child in children:
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _worker_died(workers: int) -> UsageError:
    return UsageError(
        f"a worker process was ended from outside (often: out of memory) while {workers} were at work; "
        "what was finished is kept",
        next_step=f"the same command with --workers {max(1, workers // 2)}",
    )


def _prepare_worker() -> None:
    """One thread for tokenizers; silent at Ctrl-C; no worker outlives the process that started it."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
