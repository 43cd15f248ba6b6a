"""What a job left in its folder: files, the manifest of prepared rows, the curve of a training, answers of a model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from turnmill.errors import StaleError, UsageError, quote
from turnmill.files.inventory import verify
from turnmill.shelf.inside import opened_inside
from turnmill.shelf.job_folder import JobFolder

GIVEN = ("dataset.jsonl", "metrics.jsonl", "output", "prepared")
"""Of a job's folder: what is given away. The rest names places of the server, or is a copy of what lies elsewhere."""
MAX_FILES = 100_000
"""That are looked at; a job leaves some dozens."""
MAX_LINE_BYTES = 4 << 20
"""Of one answer of a model; a longer line is left out."""
MAX_READ_BYTES = 16 << 20
"""Of answers that are read for one page."""
ANSWERS = "answers.jsonl"

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A file that a job left."""

    path: str
    """Relative to the job's folder, with `/`."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines of a file, and where the next ones begin."""

    lines: list[Line]
    next: int | None
    """Byte; None: there are no more."""


def left_files(folder: JobFolder) -> list[LeftFile]:
    """The files that a job left, by path; links are none of them."""
    found: list[LeftFile] = []
    for name in GIVEN:
        place = folder.path / name
        for path in _files_below(place):
            found.append(LeftFile(path.relative_to(folder.path).as_posix(), path.stat().st_size))
            if len(found) >= MAX_FILES:
                return found
    return sorted(found, key=lambda one: one.path)


def _files_below(place: Path) -> Iterator[Path]:
    if place.is_symlink():
        return
    if place.is_file():
        yield place
    for inner, folders, names in os.walk(place):
        folders[:] = [name for name in folders if not name.startswith(".")]  # drafts
        for name in names:
            path = Path(inner, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


@contextmanager
def opened_file(folder: JobFolder, path: str) -> Iterator[BinaryIO]:
    """A file that a job left, open.

    Raises:
        UsageError: the path is none that a job's file has, or a link leads out of the folder.
        OSError: there is no such file, or it cannot be opened.
    """
    parts = PurePosixPath(path).parts
    is_hidden = any(part.startswith(".") or "\0" in part for part in parts)
    if not parts or is_hidden or parts[0] not in GIVEN or PurePosixPath(path).is_absolute():
        raise UsageError(f"{quote(path)} is no file of the job; expected one of {', '.join(GIVEN)}")
    with opened_inside(folder.path, str(PurePosixPath(path))) as file:
        yield file


def prepared_facts(folder: JobFolder) -> dict[str, Any] | None:
    """What the manifest and the report of a job's prepared rows count; None before there are any.

    Raises:
        StaleError: they are damaged, or files are missing.
    """
    try:
        manifest = verify(folder.prepared, whole=False)
        report = json.loads((folder.prepared / "report.json").read_bytes())
    except (UsageError, FileNotFoundError):
        return None
    except ValueError:
        raise StaleError("the report of the prepared rows is damaged; start the job again") from None
    counts = manifest["counts"]
    return {
        "fingerprint": manifest["fingerprint"],
        "max_tokens": manifest["max_tokens"],
        "tokenizer_sha256": manifest["model"]["tokenizer_sha256"],
        "template": manifest["template"]["origin"],
        "steps": [{name: step[name] for name in ("name", "version", "fingerprint")} for step in manifest["steps"]],
        **{name: counts[name] for name in ("rows", "codes", "repairs", "examples", "packs", "tokens")},
        **{name: counts.get(name) for name in ("trained_tokens", "fill")},
        "sources": [_source_facts(name, one) for name, one in report["per_source"].items()],
    }


def _source_facts(name: str, said: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        **{key: said[key] for key in ("rows", "codes", "repairs", "examples", "turns")},
        "tokens": said["tokens"].get("total", 0),
        "trained_tokens": said["trained_tokens"].get("total", 0),
    }


def curve(folder: JobFolder, after: int, limit: int) -> Page:
    """What a training logged behind a step, all of a step's lines or none.

    Args:
        folder: of the job.
        after: step; -1: from the beginning.
        limit: lines at about which it ends.

    Returns:
        The lines; `next` is the step behind which the rest comes, None where there is none yet.
    """
    kept: list[Line] = []
    try:
        with folder.metrics.open("rb") as file:
            for raw in file:
                line = _decoded(raw)
                if line is None or (step := line.get("step", -1)) <= after:
                    continue
                if len(kept) >= limit and step != kept[-1]["step"]:
                    return Page(kept, kept[-1]["step"])
                kept.append(line)
    except FileNotFoundError:
        pass
    return Page(kept, None)


def answers(folder: JobFolder, start: int, limit: int, takes: Callable[[Line], bool]) -> Page | None:
    """What a model answered to the questions of an audit; None before there is any.

    A page can be short, or empty, and yet not the last: at most `MAX_READ_BYTES` are read for it.

    Args:
        folder: of the job.
        start: byte at which the page begins.
        limit: at most so many.
        takes: whether a line is wanted.
    """
    kept: list[Line] = []
    try:
        with opened_inside(folder.path, f"{folder.output.name}/{ANSWERS}") as file:
            file.seek(start)
            while len(kept) < limit and file.tell() - start < MAX_READ_BYTES:
                raw = file.readline(MAX_LINE_BYTES)
                if not raw:
                    return Page(kept, None)
                line = _decoded(raw)
                if line is not None and takes(line):
                    kept.append(line)
            end = file.tell()
            return Page(kept, end if file.read(1) else None)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _decoded(raw: bytes) -> Line | None:
    """The line; None of one that is being written, was cut, or is no line of such a file."""
    if not raw.endswith(b"\n"):
        return None
    try:
        found = json.loads(raw)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def against_control(folder: JobFolder) -> dict[str, Any] | None:
    """What a strategy chose of the prepared rows, beside its control; None where none was drawn.

    Raises:
        StaleError: a file is missing or changed.
    """
    from turnmill.verbs.compare import Named, compare

    try:
        found = compare(Named(folder.prepared, "train"), Named(folder.prepared, "control"))
    except UsageError:
        return None
    sides: dict[str, Any] = {"selected": found["a"], "control": found["b"]}
    for facts in sides.values():
        del facts["name"]
    return {**sides, "shared_rows": found["shared_rows"]}
