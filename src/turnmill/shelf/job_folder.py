"""The folder of a job: the dataset as it was when the job was made, and what came of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from turnmill.errors import StaleError
from turnmill.files.disk import sync_names, sync_tree, writing
from turnmill.shelf.content import CHUNK_BYTES, TRAVELS_AS, travelling_lines
from turnmill.shelf.inside import opened_inside
from turnmill.shelf.scan import Dataset
from turnmill.training.journal import METRICS

LINE_RULE_DIALECT = "alpaca"
"""How instruction, input and output are read."""
DRAFT = ".draft."
LEFT_S = 86_400.0
"""A draft that is a day old is nobody's any more."""
STEPS = "steps"
"""Of the folder of all jobs: the finished steps that they share."""


@dataclass(frozen=True, slots=True)
class JobFolder:
    """Where a job's files are."""

    path: Path

    @property
    def dataset(self) -> Path:
        """The rows that the job is given."""
        return self.path / "dataset.jsonl"

    @property
    def log(self) -> Path:
        """What its commands say."""
        return self.path / "log"

    @property
    def metrics(self) -> Path:
        """What its training logged, a line of JSON each."""
        return self.path / METRICS

    @property
    def prepared(self) -> Path:
        """The prepared dataset."""
        return self.path / "prepared"

    @property
    def model(self) -> Path:
        """A model that another job trained, brought here."""
        return self.path / "model"

    @property
    def output(self) -> Path:
        """The result of a job that does more than prepare."""
        return self.path / "output"

    def recipe(self) -> dict[str, Any]:
        """How the rows are read: `dialect`, and `splits` as the manifest has them."""
        found: dict[str, Any] = json.loads((self.path / "recipe.json").read_bytes())
        return found


def take_along(jobs: Path, job_id: str, dataset: Dataset) -> JobFolder:
    """Make the folder of a job, with the dataset in it; it is there whole, or not at all.

    Args:
        jobs: the folder of all jobs; made where it is not there.
        job_id: of the job.
        dataset: as it was listed.

    Raises:
        StaleError: the file has changed since.
        UsageError: it cannot be read, or the folder not written.
    """
    said = dataset.manifest
    with writing(jobs):
        jobs.mkdir(parents=True, exist_ok=True)
        _remove_left(jobs)
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=jobs))
        try:
            kept = JobFolder(draft)
            with _copied(dataset) as copy:
                if said.is_by_line_rule:
                    shutil.copyfile(copy, kept.dataset)
                else:
                    _write_lines(kept.dataset, travelling_lines(copy.parent, replace(said, file=copy.name)))
            dialect = LINE_RULE_DIALECT if said.is_by_line_rule else TRAVELS_AS
            recipe = {"dialect": dialect, "splits": said.splits}
            (draft / "recipe.json").write_text(json.dumps(recipe))
            sync_tree(draft)
            draft.chmod(0o700)
            draft.rename(jobs / job_id)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_names(jobs)
    return JobFolder(jobs / job_id)


def _remove_left(jobs: Path) -> None:
    """Remove what processes that were killed had begun to make."""
    with os.scandir(jobs) as entries:
        left = [Path(entry) for entry in entries if entry.name.startswith(DRAFT)]
    for draft in left:
        with suppress(FileNotFoundError):  # another process removes it, or gives it its name
            if time.time() - draft.stat().st_mtime > LEFT_S:
                shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _copied(dataset: Dataset) -> Iterator[Path]:
    """A private copy of the data file, with the bytes that were listed.

    Raises:
        StaleError: it has others by now.
    """
    sha256 = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="turnmill-job-") as folder:
        path = Path(folder, f"data.{dataset.manifest.format}")
        try:
            with opened_inside(dataset.folder, dataset.manifest.file) as file, path.open("wb") as copy:
                while chunk := file.read(CHUNK_BYTES):
                    sha256.update(chunk)
                    copy.write(chunk)
        except FileNotFoundError:
            raise _changed(dataset) from None
        if sha256.hexdigest() != dataset.content.sha256:
            raise _changed(dataset)
        yield path


def _changed(dataset: Dataset) -> StaleError:
    return StaleError(f"the data file of {dataset.manifest.name} changed while it was taken; ask again")


def _write_lines(path: Path, lines: Iterator[bytes]) -> None:
    with path.open("wb") as file:
        for line in lines:
            file.write(line + b"\n")


def remove_folder(jobs: Path, job_id: str) -> None:
    """Remove what was made for a job that there is not."""
    shutil.rmtree(jobs / job_id, ignore_errors=True)


def make_steps(jobs: Path) -> Path:
    """Where all jobs keep the steps that they finished; one that another job has made is taken from there."""
    steps = jobs / STEPS
    os.makedirs(steps, exist_ok=True)
    return steps
