"""The training service without HTTP: takes job starts, keeps datasets and runs, and has the runs worked on."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO
from uuid import uuid4

from turnmill.conversation import Json
from turnmill.errors import UsageError, quote, shell_word
from turnmill.files.disk import link_or_copy, sync_tree, write_whole, writing
from turnmill.shelf.content import MAX_BYTES
from turnmill.shelf.manifest import NAME_RULE, checked_name
from turnmill.sidecar.crew import GRACE_S, Crew, Stages
from turnmill.sidecar.incoming import CONTENT, decoded, read_start
from turnmill.sidecar.job_options import JobOptions, config_of, read_options
from turnmill.sidecar.problems import Refused
from turnmill.sidecar.processes import take_lock
from turnmill.sidecar.runs import CONFIG, LOG, PREPARED, Run, Runs, now
from turnmill.sidecar.stages import environment_of, stages_of
from turnmill.sidecar.store import Draft, Store, checked_filename

OWN_LOCK = "sidecar.lock"
DATA = "data"
"""Where in a run's directory its dataset lies."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a sidecar works."""

    data: Path
    """Its data directory."""
    models: Mapping[str, Path]
    """Name → directory; at least one."""
    concurrent: int = 1
    """Runs at once."""
    max_bytes: int = MAX_BYTES
    """Of a dataset."""
    grace_s: float = GRACE_S
    """Seconds that a run has to stop behind its step."""
    stages: Stages = stages_of
    """What is done for a run."""


class Service:
    """A data directory, which one sidecar has at a time.

    Args:
        settings: of the sidecar.

    Raises:
        UsageError: another sidecar has the directory, or it cannot be written.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        folder = Path(os.path.realpath(settings.data))
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._own = _claimed(folder)
            self.drafts = folder / "drafts"
            shutil.rmtree(self.drafts, ignore_errors=True)
            self.drafts.mkdir(mode=0o700)
            self.store = Store(folder / "datasets", self.drafts, settings.max_bytes)
            self.runs = Runs(folder / "runs")
        environment = environment_of(os.environ)
        self.crew = Crew(self.runs, settings.stages, environment, settings.concurrent, settings.grace_s)
        self._starting = Lock()

    def open(self) -> None:
        """Begin with what was left."""
        self.crew.start()

    def close(self) -> None:
        """Stop what works behind its step, and leave the directory to another one."""
        self.crew.stop()
        os.close(self._own)

    def start(self, body: BinaryIO) -> tuple[Run, bool]:
        """Take a job; gives its run, and whether there is one only now.

        Args:
            body: of the request, spooled.

        Raises:
            Refused: it says no job, or not what the job of its id said before.
        """
        fields, content = read_start(body)
        if "dataset" not in fields:
            beside = f" beside {CONTENT}" if content is not None else ""
            raise Refused(400, "dataset-missing", f"the job names no dataset{beside}; expected dataset, NAME.jsonl")
        filename = checked_filename(fields["dataset"])
        number = _job_of(fields.get("job"))
        options = read_options(fields, self.settings.models)
        with _on_disk():
            came = self.store.taken(filename) if content is None else self.store.drafted(filename, decoded(content))
            with came as draft, self._starting:
                known = self.runs.get(number)
                if known is not None:
                    _require_same(known, draft, options)
                    return known, False
                return self._admitted(number, draft, options, is_new=content is not None), True

    def _admitted(self, number: str, draft: Draft, options: JobOptions, *, is_new: bool) -> Run:
        """Put the dataset in its place, then the run, which has the file under a name of its own."""
        run = Run(
            id=number, state="queued", dataset=draft.filename, size_bytes=draft.content.size_bytes,
            num_records=draft.content.num_records, sha256=draft.content.sha256, model=options.model,
            options=options.given, created_at=now(),
        )  # fmt: skip
        place = self.runs.of(number)
        folder = Path(tempfile.mkdtemp(prefix="run.", dir=self.drafts))
        try:
            (folder / DATA).mkdir()
            link_or_copy(draft.path, folder / DATA / draft.filename)
            model = self.settings.models[options.model]
            data = place / DATA / draft.filename
            write_whole(folder / CONFIG, config_of(options, model, data, draft.dialect, place / PREPARED))
            (folder / LOG).touch()
            sync_tree(folder)
            if is_new:
                self.store.replace(draft)
            self.runs.admit(folder, run)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self.crew.submit(number)
        return run

    def run(self, number: str) -> Run:
        """The run of an id.

        Raises:
            Refused: there is none.
        """
        run = self.runs.get(number)
        if run is None:
            raise Refused(404, "run-unknown", f"there is no run {quote(number)}")
        return run

    def cancel(self, number: str) -> Run:
        """Have a run end, once and again.

        Raises:
            Refused: there is none, or it has ended otherwise.
        """
        with self.runs.changing():
            run = self.run(number)
            if run.has_ended and run.state != "cancelled":
                raise Refused(409, "run-ended", f"the run {quote(number)} is {run.state}: nothing is left to cancel")
            return run if run.has_ended else self.crew.cancel(number)


def _claimed(folder: Path) -> int:
    lock = take_lock(folder / OWN_LOCK)
    if lock is not None:
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        return lock
    owner = (folder / OWN_LOCK).read_text("utf-8", "replace")[:20]
    look = f"ps -p {owner}" if owner.isdecimal() else f"ls -l {shell_word(folder)}"
    raise UsageError(f"{folder} is the data directory of another sidecar, process {owner}", next_step=look)


def _job_of(given: Json) -> str:
    """The run's id: that of the caller's job, else a new one."""
    if given is None:
        return f"run-{uuid4().hex}"
    try:
        return checked_name(given if isinstance(given, str) else "")
    except UsageError:
        raise Refused(400, "job-invalid", f"job is {quote(given)}; expected {NAME_RULE}") from None


def _require_same(known: Run, draft: Draft, options: JobOptions) -> None:
    told = {
        "dataset": (known.dataset, draft.filename),
        "sha256 of the dataset": (known.sha256, draft.content.sha256),
        "model": (known.model, options.model),
        "options": (known.options, options.given),
    }
    differs = [what for what, (before, here) in told.items() if before != here]
    if differs:
        what = f"the job {quote(known.id)} was started before with another {', '.join(differs)}"
        raise Refused(409, "job-differs", f"{what}; expected the same, or another id")


@contextmanager
def _on_disk() -> Iterator[None]:
    """Turns what the disk refuses into an answer that says so; where is for the sidecar's own log.

    Raises:
        Refused: it does.
    """
    try:
        yield
    except OSError as problem:
        raise Refused(507, "storage-refused", f"the sidecar's disk does not take it: {problem.strerror}") from problem
