"""What a run has to show: how far it is, its metrics, what it said, and what it published."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ConfigDict

from turnmill.errors import StaleError, UsageError, quote
from turnmill.files.inventory import MANIFEST, read_manifest
from turnmill.files.storage import sha256_of
from turnmill.shelf.inside import opened_inside
from turnmill.sidecar.problems import Refused
from turnmill.sidecar.runs import LOG, PREPARED, TRAINED, RunFacts, work_of
from turnmill.training.journal import METRICS

MAX_METRICS = 10_000
MAX_LOG_BYTES = 1 << 20
TAIL_BYTES = 1 << 16
_HORIZON = re.compile(rb"^optimizer steps: (?:about )?([\d,]+)$", re.MULTILINE)


class Said(BaseModel):
    """A part of what the service answers."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Progress(Said):
    """How far a run is; what is not known yet is null."""

    rows: dict[str, int] | None = None
    """What became of the rows, as `prepare` counts them."""
    trained_tokens: int | None = None
    """Prepared, in one epoch."""
    step: int | None = None
    """Optimizer steps that were done."""
    steps: int | None = None
    """Optimizer steps that there will be, as it is taken."""
    epoch: float | None = None
    loss: float | None = None
    """Of the last step that was logged."""


class RunStatus(RunFacts):
    """A run, and how far it is."""

    progress: Progress


class Metrics(Said):
    """Lines of `metrics.jsonl`: a step's loss, an evaluation, the end of an epoch."""

    metrics: list[dict[str, Any]]
    truncated: bool
    """Whether there are more: ask again, after the last one's step."""


class LogPart(Said):
    """Some of what the run's commands said."""

    text: str
    offset: int
    """Of its first byte."""
    next_offset: int
    """Of the byte behind it."""


class Artefact(Said):
    """A published file."""

    path: str
    size_bytes: int
    sha256: str


def progress_of(folder: Path) -> Progress:
    """How far the run in a directory is."""
    rows, tokens = _prepared(folder)
    last = _last_metrics(_metrics_file(folder))
    found = _HORIZON.findall(_tail(folder / LOG))
    return Progress(
        rows=rows, trained_tokens=tokens, steps=int(found[-1].replace(b",", b"")) if found else None,
        **{name: last.get(name) for name in ("step", "epoch", "loss")},
    )  # fmt: skip


def _prepared(folder: Path) -> tuple[dict[str, int] | None, int | None]:
    try:
        counts = read_manifest(folder / PREPARED)["counts"]
    except (UsageError, StaleError):
        return None, None
    return counts["rows"], counts["trained_tokens"]


def _last_metrics(path: Path) -> dict[str, Any]:
    """The latest value of each metric in the last lines."""
    found: dict[str, Any] = {}
    for line in _tail(path).split(b"\n")[:-1]:  # what is behind the last end of a line is being written
        found.update(_decoded(line))
    return found


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:  # the tail begins within a line, or a crash cut it
        return {}
    return found if isinstance(found, dict) else {}


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def _metrics_file(folder: Path) -> Path:
    published = folder / TRAINED / METRICS
    return published if published.is_file() else work_of(folder) / METRICS


def metrics_of(folder: Path, after: int, limit: int = MAX_METRICS) -> Metrics:
    """The metrics behind a step; all of a step's lines, or none."""
    kept: list[dict[str, Any]] = []
    try:
        with _metrics_file(folder).open("rb") as file:
            for raw in file:
                line = _decoded(raw) if raw.endswith(b"\n") else {}
                if line.get("step", -1) <= after:
                    continue
                if len(kept) >= limit and line["step"] != kept[-1]["step"]:
                    return Metrics(metrics=kept, truncated=True)
                kept.append(line)
    except FileNotFoundError:
        pass
    return Metrics(metrics=kept, truncated=False)


def log_of(folder: Path, offset: int, limit: int = MAX_LOG_BYTES) -> LogPart:
    """What the commands said from a byte on, without a character that is not whole yet."""
    with (folder / LOG).open("rb") as file:
        file.seek(offset)
        found = file.read(limit)
    cut = next((back for back in range(1, min(4, len(found) + 1)) if found[-back] >= 0xC0), 0)
    if cut and len(found) > cut and len(found[-cut:]) < _width(found[-cut]):
        found = found[:-cut]
    return LogPart(text=found.decode("utf-8", "replace"), offset=offset, next_offset=offset + len(found))


def _width(first: int) -> int:
    """Bytes of the character that begins with a byte."""
    return 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def artefacts_of(folder: Path) -> list[Artefact]:
    """The files of the published model, by path; none before there is one."""
    published = folder / TRAINED
    try:
        manifest = read_manifest(published)
    except (UsageError, StaleError):
        return []
    found = [
        Artefact(path=entry["path"], size_bytes=entry["bytes"], sha256=entry["sha256"]) for entry in manifest["files"]
    ]
    own = published / MANIFEST
    found.append(Artefact(path=MANIFEST, size_bytes=own.stat().st_size, sha256=sha256_of(own)))
    return sorted(found, key=lambda one: one.path)


@contextmanager
def opened_artefact(folder: Path, path: str) -> Iterator[tuple[Artefact, BinaryIO]]:
    """A published file, open.

    Raises:
        Refused: none of that path is published.
    """
    found = next((one for one in artefacts_of(folder) if one.path == path), None)
    unknown = Refused(404, "artefact-unknown", f"the run has published no {quote(path)}; expected one of its artefacts")
    if found is None:
        raise unknown
    with ExitStack() as opened:
        try:
            file = opened.enter_context(opened_inside(folder / TRAINED, path))
        except (OSError, UsageError):  # gone since, or a link out that somebody put there
            raise unknown from None
        yield found, file
