"""The rows of a dataset that would be rejected, checked once more under other repairs or another dialect."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.conversation import Json
from turnmill.shelf.manifest import Manifest
from turnmill.shelf.profile import MAX_ROWS, MAX_SECONDS, MAX_TOLD_ROWS
from turnmill.shelf.reading import OpenData, opened
from turnmill.verbs.replay import PASSES

if TYPE_CHECKING:
    from turnmill.files.record import Record


@dataclass(slots=True)
class Move:
    """Rows that left with one code and that one thing became of."""

    rows: int = 0
    lines: list[int] = field(default_factory=list)
    """The first of them."""

    def add(self, line: int) -> None:
        """Count a row."""
        self.rows += 1
        if len(self.lines) < MAX_TOLD_ROWS:
            self.lines.append(line)


@dataclass(slots=True)
class Replay:
    """What became of the rejected rows."""

    rows: int = 0
    """That were looked at, accepted ones too."""
    rejected: int = 0
    moves: dict[tuple[str, str], Move] = field(default_factory=dict)
    """(Code, what it becomes: another, the same, or `passes`)."""
    complete: bool = True

    def add(self, code: str, becomes: str, line: int) -> None:
        """Count a rejected row."""
        self.rejected += 1
        self.moves.setdefault((code, becomes), Move()).add(line)

    def as_json(self) -> dict[str, Json]:
        """The answer."""
        moves = [
            {"code": code, "becomes": becomes, "rows": move.rows, "lines": move.lines}
            for (code, becomes), move in sorted(self.moves.items())
        ]
        passes = sum(move.rows for (_, becomes), move in self.moves.items() if becomes == PASSES)
        return {
            "rows": self.rows,
            "rejected": self.rejected,
            "passes": passes,
            "moves": [*moves],
            "complete": self.complete,
        }


def replay_rows(
    folder: Path,
    manifest: Manifest,
    repairs: Sequence[str] = (),
    dialect: str | None = None,
    line: int | None = None,
    *,
    max_rows: int = MAX_ROWS,
    max_seconds: float = MAX_SECONDS,
) -> Replay:
    """Check the rows that would be rejected again, as `turnmill quarantine replay` does; nothing is written.

    Args:
        folder: the dataset's real directory.
        manifest: of the dataset.
        repairs: made before a row is checked; built-in ones.
        dialect: that rows are read as, in place of their own.
        line: of the only row; None: all.
        max_rows: that are looked at.
        max_seconds: after which no further row is.

    Raises:
        UsageError: no such row, or as `profile_of`.
    """
    found = Replay()
    until = time.monotonic() + max_seconds
    with opened(folder, manifest) as data:
        before, after = data.check(), data.check(repairs, dialect)
        for record in _records(data, line):
            if found.rows >= max_rows or time.monotonic() > until:
                found.complete = False
                break
            found.rows += 1
            fault = before.outcome(record).fault
            if fault is not None:
                now = after.outcome(record).fault
                found.add(fault.code, PASSES if now is None else now.code, record.source_line)
    return found


def _records(data: OpenData, line: int | None) -> Iterator[Record]:
    if line is not None:
        yield data.at(line).record
        return
    for row in data.rows():
        yield row.record
