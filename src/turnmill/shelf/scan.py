"""The shelf's listing: its datasets by name, and what is wrong with the directories that are none."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TypeGuard

from turnmill.errors import UnknownName, UsageError, quote, shell_word
from turnmill.shelf.content import MAX_BYTES, Content, data_state, examine, sha256_of
from turnmill.shelf.inside import State, directory_inside, opened_inside, state_of
from turnmill.shelf.manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest, parse_manifest

SETTLED_NANOSECONDS = 2_000_000_000
"""A file that was changed less than this before it was read is read again: its clock may not have ticked since."""
TICK_NANOSECONDS = 100_000_000
"""As much where the file system's clock shows parts of a second, and so ticks often."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that a job can use."""

    folder: Path
    """Its real directory."""
    dir: str
    """Name of its directory in the shelf."""
    manifest: Manifest
    content: Content

    @property
    def filename(self) -> str:
        """What it is called where it is trained on."""
        return f"{self.manifest.name}.jsonl"

    def as_json(self) -> dict[str, Any]:
        """What a listing says of it; keys beyond the ones of every dataset only where its manifest has them."""
        said, content = self.manifest, self.content
        beyond = {"dialect": said.dialect, "licence": said.licence, "splits": said.splits}
        return {
            "name": said.name,
            "description": said.description,
            "format": said.format,
            "file": said.file,
            "version": said.version,
            "generator": said.generator,
            "dir": self.dir,
            "filename": self.filename,
            "size_bytes": content.size_bytes,
            "num_records": content.num_records,
            "sha256": content.sha256,
            **{key: value for key, value in beyond.items() if value},
        }


@dataclass(frozen=True, slots=True)
class Problem:
    """A directory with a manifest that is no dataset, and why."""

    dir: str
    error: str

    def as_json(self) -> dict[str, str]:
        """As a listing says it."""
        return {"dir": self.dir, "error": self.error}


@dataclass(frozen=True, slots=True)
class Listing:
    """What a shelf holds at one moment."""

    datasets: tuple[Dataset, ...]
    """By name."""
    problems: tuple[Problem, ...]
    """By directory."""

    def dataset(self, name: str) -> Dataset:
        """The dataset of that name.

        Raises:
            UsageError: there is none, or its directory is a problem.
        """
        for dataset in self.datasets:
            if dataset.manifest.name == name:
                return dataset
        for problem in self.problems:
            if problem.dir == name:
                raise UsageError(f"{quote(name)} is no dataset: {problem.error}")
        raise UnknownName("dataset", name, [dataset.manifest.name for dataset in self.datasets])

    def as_json(self) -> dict[str, Any]:
        """The whole listing."""
        return {
            "datasets": [dataset.as_json() for dataset in self.datasets],
            "problems": [problem.as_json() for problem in self.problems],
        }


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found in a directory, and the states that its files had."""

    manifest_state: State
    data_state: State
    read_at: int
    """Nanoseconds since the epoch."""
    manifest: Manifest
    found: Dataset | UsageError

    def is_settled(self) -> bool:
        """Whether both files had been left alone for a while when they were read."""
        changed = max(self.manifest_state[4], self.data_state[4])
        ticks_often = changed % 1_000_000_000 != 0
        return self.read_at - changed > (
            min(TICK_NANOSECONDS, SETTLED_NANOSECONDS) if ticks_often else SETTLED_NANOSECONDS
        )

    def is_untouched(self, folder: str) -> bool:
        """Whether nothing was changed since, as far as two looks can tell, with no link on the way below `folder`."""
        if "/" in self.manifest.file or not self.is_settled():
            return False
        try:
            return (
                state_of(os.lstat(f"{folder}/{self.manifest.file}")) == self.data_state
                and state_of(os.lstat(f"{folder}/{MANIFEST}")) == self.manifest_state
            )
        except OSError:
            return False

    def outcome(self) -> Dataset:
        """The dataset.

        Raises:
            UsageError: it is none.
        """
        if isinstance(self.found, UsageError):
            raise self.found.with_traceback(None)
        return self.found


class Shelf:
    """A directory of datasets, looked at anew at every listing; a file is read again only where it changed.

    Args:
        directory: may not be there yet: then it has no datasets.
        max_bytes: of a data file.
    """

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES) -> None:
        self.directory = directory
        self.max_bytes = max_bytes
        self._known: dict[str, _Known] = {}
        self._looking = Lock()

    def listing(self) -> Listing:
        """What it holds now; of two threads that ask at once the second looks when the first has.

        Raises:
            UsageError: the shelf itself is no directory, or cannot be read.
        """
        with self._looking:
            return self._listing()

    def _listing(self) -> Listing:
        datasets: dict[str, Dataset] = {}
        problems: list[Problem] = []
        names = self._names()
        for name, is_link in names.items():
            try:
                dataset = self._dataset(name, is_link=is_link)
                if dataset is not None:
                    _require_unique(dataset, datasets)
                    datasets[dataset.manifest.name] = dataset
            except UsageError as error:
                problems.append(Problem(shown(name), error.message))
        for name in self._known.keys() - names.keys():
            self._known.pop(name, None)
        return Listing(tuple(datasets[name] for name in sorted(datasets)), tuple(problems))

    def _names(self) -> dict[str, bool]:
        """The shelf's directories, sorted, without those whose name starts with a dot; and whether each is a link."""
        try:
            with os.scandir(self.directory) as entries:
                return dict(sorted((entry.name, entry.is_symlink()) for entry in entries if _is_candidate(entry)))
        except FileNotFoundError:
            return {}
        except OSError as error:
            what = f"cannot read the shelf {self.directory}: {error.strerror}"
            raise UsageError(what, next_step=f"ls -ld {shell_word(self.directory)}") from None

    def _dataset(self, name: str, *, is_link: bool) -> Dataset | None:
        """The dataset in a directory; None where it has no manifest.

        Raises:
            UsageError: it has one that cannot be used.
        """
        known = self._known.get(name)
        if known is not None and not is_link and known.is_untouched(f"{self.directory}/{name}"):
            return known.outcome()
        try:
            folder = directory_inside(self.directory, name)
            manifest_state, manifest = _read_manifest(folder, name, known)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UsageError(f"cannot read {MANIFEST}: {error.strerror}") from None
        read_at, before = time.time_ns(), data_state(folder, manifest)
        found = self._found(
            folder, name, manifest, known if _is_same(known, manifest_state, manifest, before) else None
        )
        self._known[name] = known = _Known(manifest_state, before, read_at, manifest, found)
        return known.outcome()

    def know(self, dataset: Dataset) -> None:
        """Take note of a dataset whose file was examined before it got its name: the next listing only hashes it."""
        with suppress(OSError, UsageError):
            state = data_state(dataset.folder, dataset.manifest)
            with opened_inside(dataset.folder, MANIFEST) as file:
                manifest_state = state_of(os.fstat(file.fileno()))
            never_read = 0  # which is too early to be trusted
            known = _Known(manifest_state, state, never_read, dataset.manifest, dataset)
            self._known[dataset.dir] = known

    def _found(self, folder: Path, name: str, manifest: Manifest, known: _Known | None) -> Dataset | UsageError:
        """What the data file makes of the directory.

        Args:
            folder: its real place.
            name: of the directory.
            manifest: as it is now.
            known: what was found when both files looked as they do now.
        """
        if known is not None and known.is_settled():
            return known.found
        try:
            # the file is too young for its times to be trusted, but its bytes can be
            if known is not None and isinstance(known.found, Dataset) and _has(folder, known.found):
                return known.found
            return Dataset(folder, name, manifest, examine(folder, manifest, self.max_bytes))
        except UsageError as problem:
            return problem


def shown(name: str) -> str:
    """A file's name as text that can be printed, whatever its bytes are."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _is_candidate(entry: os.DirEntry[str]) -> bool:
    """Whether it can be a dataset's directory; links are looked at later."""
    if entry.name.startswith("."):
        return False
    try:
        return entry.is_symlink() or entry.is_dir()
    except OSError:
        return False


def _read_manifest(folder: Path, name: str, known: _Known | None) -> tuple[State, Manifest]:
    with opened_inside(folder, MANIFEST) as file:
        state = state_of(os.fstat(file.fileno()))
        if _is_current(known, state):
            return state, known.manifest
        return state, parse_manifest(file.read(MAX_MANIFEST_BYTES + 1), shown(name))


def read_manifest(folder: Path, name: str) -> Manifest:
    """The manifest of a dataset's real directory.

    Raises:
        UsageError: it is not there, cannot be read or cannot be used.
    """
    try:
        return _read_manifest(folder, name, None)[1]
    except OSError as error:
        raise UsageError(f"cannot read {folder / MANIFEST}: {error.strerror}") from None


def _has(folder: Path, dataset: Dataset) -> bool:
    return sha256_of(folder, dataset.manifest) == dataset.content.sha256


def _is_current(known: _Known | None, manifest_state: State) -> TypeGuard[_Known]:
    """Whether the manifest is the known one."""
    return known is not None and known.manifest_state == manifest_state and known.is_settled()


def _is_same(known: _Known | None, manifest_state: State, manifest: Manifest, before: State) -> bool:
    """Whether both files look as they did."""
    return known is not None and (known.manifest_state, known.manifest, known.data_state) == (
        manifest_state, manifest, before,
    )  # fmt: skip


def _require_unique(dataset: Dataset, datasets: dict[str, Dataset]) -> None:
    other = datasets.get(dataset.manifest.name)
    if other is not None:
        raise UsageError(f"the name {quote(dataset.manifest.name)} is that of the dataset in {quote(other.dir)}, too")
