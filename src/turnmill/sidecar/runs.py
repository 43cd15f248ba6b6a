"""The runs: a directory each, with all that is known of one in `state.json`, replaced whole at every change."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from turnmill.files.disk import beside, sync_names, write_whole
from turnmill.sidecar.dataset import UtcDatetime

State = Literal["queued", "preparing", "training", "done", "failed", "cancelled"]
ENDED: frozenset[State] = frozenset({"done", "failed", "cancelled"})
STATE_FILE = "state.json"
CONFIG, LOG, LOCK = "run.yaml", "log", "lock"
PREPARED, TRAINED = "prepared", "trained"

_log = logging.getLogger(__name__)


class RunFacts(BaseModel):
    """What is known of a run."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    id: str
    """That of the job where it has one."""
    state: State
    dataset: str
    """File name."""
    size_bytes: int
    num_records: int
    sha256: str
    """Of the dataset, 64 hex digits."""
    model: str
    """Its name in the sidecar."""
    options: dict[str, Any]
    """As the job gave them."""
    created_at: UtcDatetime
    started_at: UtcDatetime | None = None
    ended_at: UtcDatetime | None = None
    exit_code: int | None = None
    """Of the last command; negative: the signal that ended it."""
    error: str | None = None
    """What a failed run says."""
    attempts: int = 0
    """How often it was begun; more than once where the sidecar was killed or stopped meanwhile."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.state in ENDED


class Process(BaseModel):
    """A process of this machine, told from a later one of its number by when it began."""

    model_config = ConfigDict(frozen=True)

    pid: int
    began: str


class Run(RunFacts):
    """A run as it is stored."""

    is_cancelled: bool = False
    """Whether somebody asked for its end."""
    process: Process | None = None
    """What works on it: where the sidecar is gone, it may still."""
    crashes: int = 0
    """How often the sidecar was killed while it worked on it."""

    def facts(self) -> dict[str, Any]:
        """Those that everybody may know."""
        return {name: getattr(self, name) for name in RunFacts.model_fields}


class Runs:
    """All runs of a data directory; what is changed is on the disk before anybody is told.

    Args:
        folder: made where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True, mode=0o700)
        self.folder = folder
        self._lock = RLock()
        self._runs = {run.id: run for run in self._stored()}

    def get(self, number: str) -> Run | None:
        """The run of that id."""
        return self._runs.get(number)

    def run(self, number: str) -> Run:
        """The run of an id that was given out."""
        return self._runs[number]

    def all(self) -> list[Run]:
        """The latest first."""
        with self._lock:
            return sorted(self._runs.values(), key=lambda run: run.created_at, reverse=True)

    def of(self, number: str) -> Path:
        """The directory of a run."""
        return self.folder / number

    def admit(self, draft: Path, run: Run) -> None:
        """Take in a run, whose whole directory is drafted beside; its state is written last.

        Raises:
            OSError: the disk does not take it.
        """
        write_whole(draft / STATE_FILE, _file(run))
        sync_names(draft)
        with self._lock:
            os.rename(draft, self.of(run.id))
            self._runs[run.id] = run
        sync_names(self.folder)

    def change(self, number: str, **values: Any) -> Run:
        """Change what is known of a run.

        Raises:
            OSError: the disk does not take it; here it is known all the same.
        """
        with self.changing():
            changed = self._runs[number].model_copy(update=values)
            self._runs[number] = changed
            place = self.of(number) / STATE_FILE
            write_whole(place.with_suffix(".draft"), _file(changed))
            os.replace(place.with_suffix(".draft"), place)
            sync_names(place.parent)
        return changed

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Nobody else changes a run meanwhile."""
        with self._lock:
            yield

    def _stored(self) -> Iterator[Run]:
        for place in sorted(self.folder.iterdir()):
            try:
                yield Run.model_validate_json((place / STATE_FILE).read_bytes())
            except (OSError, ValidationError):
                _log.warning("%s holds no run that can be read; it is passed over", place)


def work_of(folder: Path) -> Path:
    """Where a run's checkpoints and metrics lie until its model is published."""
    return beside(folder / TRAINED, "train")


def _file(run: Run) -> bytes:
    return run.model_dump_json(indent=2).encode("utf-8") + b"\n"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)
