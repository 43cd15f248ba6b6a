"""Tasks on a Ray cluster: the way past one machine.

The cluster is the one that `RAY_ADDRESS` names, else one that `ray start` began on this machine, else one of this
machine's cores, for the time of the run. Its nodes need turnmill, and the same path to the cache: a disk that all of
them see, or a store (`--cache s3://…`).
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from turnmill.errors import UsageError, shell_word
from turnmill.executors import executor

ADDRESS_VARIABLE = "RAY_ADDRESS"
RETRIES = 3
"""How often a task is run again whose worker or node died."""
WINDOW = 2
"""Tasks that wait or run, a worker: what is submitted further ahead would only fill the cluster's memory."""
CONNECT_S = 5.0

Submit = Callable[[Any], Any]
"""Task → the reference of its result."""


@executor("ray")
def on_tasks(function: Callable[[Any], Any], tasks: Sequence[Any], workers: int) -> Generator[Any, None, None]:
    """Runs tasks on a Ray cluster, a core each; one whose worker dies is run again.

    Raises:
        UsageError: Ray is missing, its address does not answer, or a task's workers died again and again.
    """
    if not tasks:
        return
    ray = _connected(workers)
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_called)
    yield from _in_order(ray, partial(remote.remote, function), tasks, _slots(ray) * WINDOW)


@executor("ray-actors")
def on_actors(function: Callable[[Any], Any], tasks: Sequence[Any], workers: int) -> Generator[Any, None, None]:
    """Runs tasks on processes of a Ray cluster that stay, a GPU each where there are any: they keep a model loaded.

    Raises:
        UsageError: as `ray`.
    """
    if not tasks:
        return
    ray = _connected(workers)
    gpus = int(ray.cluster_resources().get("GPU", 0))
    count = min(len(tasks), gpus or workers)
    kind = ray.remote(num_cpus=1, num_gpus=1 if gpus else 0, max_restarts=RETRIES, max_task_retries=RETRIES)(_Actor)
    actors = deque(kind.remote(function) for _ in range(count))

    def submit(task: Any) -> Any:
        actors.rotate(-1)
        return actors[0].call.remote(task)

    try:
        yield from _in_order(ray, submit, tasks, count * WINDOW)
    finally:
        for actor in actors:
            ray.kill(actor)


class _Actor:
    """A process that calls one function again and again."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def call(self, task: Any) -> Any:
        """The function's result."""
        return self._function(task)


def _called(function: Callable[[Any], Any], task: Any) -> Any:
    return function(task)


def _in_order(ray: Any, submit: Submit, tasks: Sequence[Any], window: int) -> Generator[Any, None, None]:
    """Results in the tasks' order, at most `window` tasks submitted and not done."""
    references: dict[int, Any] = {}
    pending: dict[Any, int] = {}
    submitted = 0
    try:
        for number in range(len(tasks)):
            while True:
                while submitted < len(tasks) and len(pending) < window:
                    references[submitted] = submit(tasks[submitted])
                    pending[references[submitted]] = submitted
                    submitted += 1
                if references[number] not in pending:
                    break
                ready, _ = ray.wait(list(pending), num_returns=1)
                for reference in ready:
                    del pending[reference]
            yield _result(ray, references.pop(number))
    finally:
        for reference in pending:
            ray.cancel(reference)


def _result(ray: Any, reference: Any) -> Any:
    """A task's result, or what it raised, as it raised it."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as fault:
        if isinstance(fault.cause, Exception):
            raise fault.cause from None
        raise
    except ray.exceptions.RayError as fault:
        raise UsageError(
            f"a task's worker died {RETRIES + 1} times (often: out of memory): {str(fault).splitlines()[0]}; what was "
            "finished is kept",
            next_step="ray status",
        ) from fault


def _slots(ray: Any) -> int:
    """How many tasks the cluster runs at once."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _connected(workers: int) -> Any:
    """Ray, connected to its cluster.

    Raises:
        UsageError: it is not installed, or its address does not answer.
    """
    try:
        import ray
    except ImportError:
        raise UsageError(
            "the executor `ray` needs ray, which is not installed", next_step="pip install 'turnmill[ray]'"
        ) from None
    with _connecting:  # several steps of a graph may ask at once
        if not ray.is_initialized():
            _connect(ray, workers)
    return ray


_connecting = threading.Lock()


def _connect(ray: Any, workers: int) -> None:
    address = os.environ.get(ADDRESS_VARIABLE)
    if address:
        _require_answer(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers of each run
    quiet: dict[str, Any] = {"logging_level": "error", "log_to_driver": False}
    try:
        ray.init(address=address or "auto", **quiet)
    except ConnectionError as problem:
        if address:
            raise _no_answer(address, problem) from problem
        ray.init(num_cpus=workers, include_dashboard=False, **quiet)
    atexit.register(ray.shutdown)


def _require_answer(address: str) -> None:
    """Refuse an address where nothing listens: Ray itself would try for a long time."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():
        return  # `auto`, `local`: Ray's own words
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except OSError as problem:
        raise _no_answer(address, problem) from problem


def _no_answer(address: str, problem: Exception) -> UsageError:
    wants_token = "InvalidAuthToken" in f"{problem.__cause__}"
    why = "it wants a token (ray get-auth-token)" if wants_token else str(problem).splitlines()[0]
    return UsageError(
        f"no Ray cluster answers at {address} ({ADDRESS_VARIABLE}): {why}",
        next_step=f"ray status --address {shell_word(address)}",
    )
