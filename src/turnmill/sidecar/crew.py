"""Who works on the runs: so many at a time, in the order in which they came, each command a process of its own."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Condition, Event, Thread
from typing import NamedTuple

from turnmill.sidecar.processes import Child, take_over
from turnmill.sidecar.runs import LOCK, LOG, Run, Runs, State, now, work_of

GRACE_S = 30.0
"""Seconds between the request to stop behind a step and the end."""
MAX_CRASHES = 5
"""A run that the sidecar was killed over so often is not begun again: it may be why."""
ERROR_MARK = b"turnmill: "
"""What a command's error begins with."""
MAX_ERROR_BYTES = 2_000
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
"""A run asks nobody outside for anything."""

_log = logging.getLogger(__name__)


class Stage(NamedTuple):
    """A command of a run."""

    state: State
    """What the run is doing meanwhile."""
    command: tuple[str, ...]


Stages = Callable[[Path], Iterator[Stage]]
"""A run's directory → what is left to do, each asked for when the one before is done."""


class Crew:
    """Threads that wait for the processes of the runs.

    Args:
        runs: of the data directory; those that have not ended are taken up.
        stages: what is done for a run.
        environment: of the processes.
        concurrent: runs at once.
        grace_s: between the request to stop and the end.
    """

    def __init__(
        self, runs: Runs, stages: Stages, environment: Mapping[str, str], concurrent: int = 1, grace_s: float = GRACE_S
    ) -> None:
        self._runs, self._stages, self._grace_s = runs, stages, grace_s
        self._environment = {**environment, **OFFLINE}
        self._waiting: deque[str] = deque()
        self._is_needed = Condition()
        self._children: dict[str, Child] = {}
        self._stopping = Event()
        self._threads = [Thread(target=self._work, name=f"runs-{number}", daemon=True) for number in range(concurrent)]

    @property
    def is_at_work(self) -> bool:
        """Whether runs are begun."""
        return not self._stopping.is_set() and all(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Take up what was left, what had been begun first; then wait for more."""
        left = [run for run in self._runs.all() if not run.has_ended]
        left.sort(key=lambda run: (run.state == "queued", run.created_at))
        self._waiting.extend(run.id for run in left)
        for thread in self._threads:
            thread.start()

    def submit(self, number: str) -> None:
        """Work on a run when its turn comes."""
        with self._is_needed:
            self._waiting.append(number)
            self._is_needed.notify()

    def cancel(self, number: str) -> Run:
        """Have a run end; gives what is known of it, which may be that it still works."""
        with self._runs.changing():
            run = self._runs.change(number, is_cancelled=True)
            with self._is_needed:
                if number in self._waiting and run.process is None:
                    self._waiting.remove(number)
                    return self._end(number, "cancelled")
            child = self._children.get(number)
        if child is not None:
            child.ask_to_stop(self._grace_s)
        return run

    def stop(self) -> None:
        """Ask all to stop behind their step, and wait for them; the runs are taken up at the next start."""
        self._stopping.set()
        with self._is_needed:
            self._is_needed.notify_all()
        for child in list(self._children.values()):
            child.ask_to_stop(self._grace_s)
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _work(self) -> None:
        while (number := self._next()) is not None:
            try:
                self._do(number)
            except Exception as problem:  # a bug, or a disk that takes nothing: other runs go on
                _log.exception("run %s", number)
                self._fail(number, f"the sidecar could not go on with it: {type(problem).__name__}: {problem}")

    def _next(self) -> str | None:
        with self._is_needed:
            self._is_needed.wait_for(lambda: self._waiting or self._stopping.is_set())
            return None if self._stopping.is_set() else self._waiting.popleft()

    def _do(self, number: str) -> None:
        folder, run = self._runs.of(number), self._runs.run(number)
        lock = take_over(folder / LOCK, run.process, self._grace_s, self._stopping.wait)
        if lock is None:
            return
        os.close(lock)
        run = self._begun(number, run)
        if run.crashes >= MAX_CRASHES:
            self._fail(number, f"the sidecar was killed {run.crashes} times while it worked on this run")
            return
        for stage in self._stages(folder):
            if self._runs.run(number).is_cancelled:
                self._end(number, "cancelled")
                return
            if self._stopping.is_set() or not self._is_done(number, stage):
                return
        self._end(number, "done")

    def _begun(self, number: str, run: Run) -> Run:
        return self._runs.change(
            number,
            started_at=run.started_at or now(),
            attempts=run.attempts + 1,
            crashes=run.crashes + (run.process is not None),
            process=None,
        )

    def _is_done(self, number: str, stage: Stage) -> bool:
        """Whether a command did what it was to do; else the run has ended, or is left for later."""
        folder = self._runs.of(number)
        said_before = (folder / LOG).stat().st_size
        code = self._code_of(number, stage)
        run = self._runs.change(number, process=None, exit_code=code)
        if code == 0:
            return True
        if run.is_cancelled:
            self._end(number, "cancelled")
        elif not self._stopping.is_set():
            self._fail(number, error_of(folder, said_before, code))
        return False

    def _code_of(self, number: str, stage: Stage) -> int:
        """Exit code of a command, once it is over."""
        folder = self._runs.of(number)
        lock = take_over(folder / LOCK, None, self._grace_s, self._stopping.wait)
        if lock is None:
            return -signal.SIGTERM
        try:
            child = Child(stage.command, folder, folder / LOG, lock, self._environment)
        finally:
            os.close(lock)
        try:
            self._children[number] = child
            run = self._runs.change(number, state=stage.state, process=child.process)
            if run.is_cancelled or self._stopping.is_set():
                child.ask_to_stop(self._grace_s)
        finally:
            code = child.wait()
            del self._children[number]
        return code

    def _end(self, number: str, state: State) -> Run:
        if state == "cancelled":  # nobody goes on from its checkpoints
            shutil.rmtree(work_of(self._runs.of(number)), ignore_errors=True)
        return self._runs.change(number, state=state, ended_at=now(), process=None)

    def _fail(self, number: str, error: str) -> None:
        try:
            self._runs.change(number, state="failed", ended_at=now(), process=None, error=error)
        except OSError:
            _log.exception("run %s: its end is not on the disk", number)


def error_of(folder: Path, start: int, code: int) -> str:
    """What a command said last: its error where it gave one.

    Args:
        folder: of the run, whose path is left out.
        start: byte of the log at which the command began.
        code: it ended with.
    """
    with (folder / LOG).open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(start, size - (1 << 16)))
        said = log.read().replace(os.fsencode(f"{folder}/"), b"")
    lines = [line for line in said.splitlines() if line.strip()]
    marked = [place for place, line in enumerate(lines) if line.startswith(ERROR_MARK)]
    found = b"\n".join(lines[marked[-1] :] if marked else lines[-1:])[:MAX_ERROR_BYTES].decode("utf-8", "replace")
    if code < 0:
        names = {one.value: one.name for one in signal.Signals}
        by = f"it was ended by {names.get(-code, f'signal {-code}')}"
        return f"{by}: {found}" if found else by
    return found.removeprefix(ERROR_MARK.decode()) or f"it ended with {code} and said nothing"
