"""convert: checked rows as records of another dialect, in one file of JSON lines; no model is needed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from turnmill.conversation import Checked, Json
from turnmill.dialects.writing import write_record
from turnmill.errors import HealthError, Rejected, UsageError
from turnmill.files.disk import beside, writing
from turnmill.files.record import Record
from turnmill.verbs.check import check_fatal, check_health, outcomes, tasks_of
from turnmill.verbs.read import OpenSource, kept_annotations, with_trace_columns

if TYPE_CHECKING:
    from turnmill.config import Config


@dataclass(slots=True)
class SourceCounts:
    """What became of a source's rows."""

    source: str
    counts: Counter[str] = field(default_factory=Counter)
    """`rows/read`, `rows/checked` (those that are written), `rows/rejected`, `codes/<code>`, `read/<what>`."""
    fatal: list[str] = field(default_factory=list)
    """Files that end before their end."""
    warning: str | None = None

    def as_json(self) -> dict[str, Json]:
        """The source's part of the answer."""
        codes = {key.removeprefix("codes/"): n for key, n in self.counts.items() if key.startswith("codes/")}
        noted = {key: n for key, n in sorted(self.counts.items()) if key.startswith("read/")}
        rows = {"rows": self.counts["rows/read"], "written": self.counts["rows/checked"]}
        return {"source": self.source, **rows, "codes": codes, "counts": noted}


OnFault = Callable[[Record, Rejected], None]


def convert_sources(
    opened: list[OpenSource], config: Config, dialect: str, output: Path | None, on_fault: OnFault
) -> list[SourceCounts]:
    """Write every row that is sound and can be said; the file appears whole, or not at all.

    Args:
        opened: the sources, in order.
        config: how they are read and checked, and how many rows each may lose.
        dialect: that of the output.
        output: a file that is not there yet; None writes nothing and only counts.
        on_fault: told of every row that is not written.

    Raises:
        UsageError: the output is there already, or cannot be written.
        HealthError: a source loses too many rows; nothing is written.
    """
    config = with_trace_columns(config, opened)
    if output is None:
        return _written(opened, config, dialect, None, on_fault)
    if output.exists() or output.is_symlink():
        raise UsageError(f"{output} is there already; nothing was written", next_step=f"ls -l {output}")
    draft = beside(output, "draft")
    with writing(output):
        try:
            with draft.open("w", encoding="utf-8", newline="\n") as file:
                counts = _written(opened, config, dialect, file, on_fault)
            draft.rename(output)
        finally:
            draft.unlink(missing_ok=True)
    return counts


def _written(
    opened: list[OpenSource], config: Config, dialect: str, file: IO[str] | None, on_fault: OnFault
) -> list[SourceCounts]:
    found = []
    for source in opened:
        counted = SourceCounts(source.source.name)
        for record in _records(source, config, dialect, counted, on_fault):
            if file is not None:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        found.append(counted)
    _ask_health(opened, config, found)
    return found


def _records(
    source: OpenSource, config: Config, dialect: str, counted: SourceCounts, on_fault: OnFault
) -> Iterator[dict[str, Json]]:
    for task in tasks_of(source, config):
        for record, _, checked, fault, _ in outcomes(task, counted.counts):
            counted.counts["rows/read"] += 1
            written = None
            if checked is not None:
                written, fault = _said(checked, dialect, config.read.keep_columns)
            if fault is not None:
                counted.counts["rows/rejected"] += 1
                counted.counts[f"codes/{fault.code}"] += 1
                on_fault(record, fault)
                if record.fatal:
                    counted.fatal.append(f"{record.source_file}: {fault.message}")
            if written is not None:
                counted.counts["rows/checked"] += 1
                yield written


def _said(
    checked: Checked, dialect: str, keep_columns: tuple[str, ...]
) -> tuple[dict[str, Json] | None, Rejected | None]:
    try:
        record = write_record(checked, dialect)
    except Rejected as fault:
        return None, fault
    kept = {column: checked.meta[column] for column in kept_annotations(checked, keep_columns)}
    return {**kept, **record}, None


def _ask_health(opened: list[OpenSource], config: Config, found: list[SourceCounts]) -> None:
    failures = []
    for source, counted in zip(opened, found, strict=True):
        try:
            own = config.of(source.source)
            counted.warning = check_health(counted.source, counted.counts, own.health, "")
            check_fatal(counted.fatal, own.read)
        except HealthError as failure:
            failures.append(failure.message)
    if failures:
        raise HealthError("\n".join([*failures, "nothing was written"]), next_step="--health.max_rejected 1")
