import functools
import multiprocessing
import operator
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from turnmill.errors import UsageError
from turnmill.executors import executors
from turnmill.executors.local import workers_kept

ONES = functools.partial(pow, 2)
OWN = [name for name in executors.names() if not name.startswith("ray")]
"""Those that need no cluster: `test_ray.py` has the others."""


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_tasks(name: str, workers: int) -> None:
    assert list(executors.get(name)(ONES, range(20), workers)) == [2**n for n in range(20)]
    assert list(executors.get(name)(ONES, [], workers)) == []


@pytest.mark.parametrize("name", OWN)
def test_the_first_exception_in_order_is_raised(name: str) -> None:
    results = executors.get(name)(functools.partial(operator.truediv, 1), [1, 0, 2], 2)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        list(results)
    assert multiprocessing.active_children() == []


def test_local_workers_are_other_processes_with_one_thread() -> None:
    local = executors.get("local")
    assert os.getpid() not in set(local(eval, ["__import__('os').getpid()"] * 4, 2))
    assert list(local(eval, ["__import__('os').environ['TOKENIZERS_PARALLELISM']"] * 2, 2)) == ["false"] * 2
    assert list(local(eval, ["__import__('pyarrow').cpu_count()"] * 2, 2)) == [1] * 2


@pytest.mark.parametrize("chosen", [None, "system"])
def test_arrow_in_a_worker_keeps_little_unless_told_how(monkeypatch: pytest.MonkeyPatch, chosen: str | None) -> None:
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    if chosen is not None:
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", chosen)
    lean = "jemalloc" if "jemalloc" in pa.supported_memory_backends() else pa.default_memory_pool().backend_name
    asked = "__import__('pyarrow').default_memory_pool().backend_name"
    assert list(executors.get("local")(eval, [asked] * 2, 2)) == [chosen or lean] * 2


def test_a_worker_that_dies_is_an_error_that_says_so() -> None:
    with pytest.raises(UsageError, match="worker process was ended") as died:
        list(executors.get("local")(os._exit, [9, 9], 2))
    assert "--workers 1" in died.value.next_step


PROGRAM = """
import signal
import time
from contextlib import closing
from turnmill.executors import executors
from turnmill.executors.local import workers_kept
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits that it is ignored
    with closing(executors.get("local")(time.sleep, [0, 600, 600], 2)) as results:
        print(next(results), flush=True)
        list(results)
"""


@pytest.mark.parametrize(("how", "said"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGKILL, "")])
def test_no_worker_outlives_its_run(how: signal.Signals, said: str) -> None:
    run = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "None\n"
    run.send_signal(how)
    _, errors = run.communicate(timeout=60)  # returns when the workers, too, have let go of the pipes
    assert errors.rstrip().endswith(said)


def test_a_run_that_ends_leaves_the_workers_of_another_alone() -> None:
    """Two steps of a graph run beside each other in threads of one process."""
    local = executors.get("local")
    shorter = local(time.sleep, [0, 0], 2)
    assert next(shorter) is None
    longer = local(time.sleep, [0, 0, 0.5, 0.5], 2)
    assert next(longer) is None
    assert next(shorter) is None
    shorter.close()
    assert list(longer) == [None] * 3


def test_workers_that_are_kept_do_all_that_is_asked_of_them_in_a_block() -> None:
    local, process = executors.get("local"), ["(__import__('time').sleep(0.2), __import__('os').getpid())[1]"] * 6
    with workers_kept():
        first, second = set(local(eval, process, 2)), set(local(eval, process, 2))
        more = set(local(eval, process, 3))
    assert first == second
    assert len(first) == 2
    assert more & first == set()
    assert multiprocessing.active_children() == []


def test_kept_workers_end_with_what_went_wrong_in_the_block() -> None:
    with pytest.raises(ZeroDivisionError), workers_kept():
        list(executors.get("local")(functools.partial(operator.truediv, 1), [1, 0, 2], 2))
    with pytest.raises(UsageError, match="worker process was ended"), workers_kept():
        list(executors.get("local")(os._exit, [9, 9], 2))
    assert multiprocessing.active_children() == []
