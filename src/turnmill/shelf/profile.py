"""What the rows of a dataset would come to, and what they are like, in one pass over as many as one answer may take."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.conversation import Json
from turnmill.shelf.manifest import Manifest
from turnmill.shelf.reading import opened
from turnmill.shelf.row_facts import conversation_of, shape_of, source_of

if TYPE_CHECKING:
    from turnmill.verbs.check import Outcome

MAX_ROWS = 200_000
MAX_SECONDS = 20.0
"""How many rows are looked at for one answer, and for how long."""
MAX_TOLD_ROWS = 20
MAX_SOURCES = 100
TURN_EDGES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 21, 31, 51, 101, 201, 501, 1001)
CHARACTER_EDGES = tuple(part * 10**power for power in range(1, 7) for part in (1, 2, 5))


class Histogram:
    """How many values lie in each part of a scale; the last part has no end.

    Args:
        edges: where each part begins, rising; what is below the first belongs to it.
    """

    def __init__(self, edges: Sequence[int]) -> None:
        self.edges = edges
        self.counts = [0] * len(edges)

    def add(self, value: int) -> None:
        """Count a value."""
        self.counts[max(bisect_right(self.edges, value) - 1, 0)] += 1

    def as_json(self) -> dict[str, Json]:
        """`edges`, and `counts` of the values from each edge up to the next."""
        return {"edges": [*self.edges], "counts": [*self.counts]}


@dataclass(slots=True)
class Profile:
    """What the rows of a dataset would come to, and what they are like."""

    rows: int = 0
    accepted: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    faults: list[dict[str, Json]] = field(default_factory=list)
    """The first rows that would leave: `line`, `code`, `error`."""
    sources: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    """Rows that have a turn of it."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Rows that have some."""
    turns: Histogram = field(default_factory=lambda: Histogram(TURN_EDGES))
    characters: Histogram = field(default_factory=lambda: Histogram((0, *CHARACTER_EDGES)))
    complete: bool = True

    def add(self, outcome: Outcome) -> None:
        """Count a row."""
        self.rows += 1
        self.sources[source_of(outcome.record)] += 1
        if outcome.fault is None:
            self.accepted += 1
        else:
            self.codes[outcome.fault.code] += 1
            if len(self.faults) < MAX_TOLD_ROWS:
                said = {"line": outcome.record.source_line, "code": outcome.fault.code, "error": outcome.fault.message}
                self.faults.append(said)
        self._add_shape(outcome)

    def _add_shape(self, outcome: Outcome) -> None:
        conversation = conversation_of(outcome)
        if conversation is None:
            return
        shape = shape_of(conversation)
        self.turns.add(shape.turns)
        self.characters.add(shape.characters)
        self.roles.update(set(shape.speakers))
        has = {"reasoning": shape.has_reasoning, "calls": shape.has_tool_calls, "tools": shape.has_tools}
        self.kinds.update(kind for kind, is_there in has.items() if is_there)

    def check_json(self) -> dict[str, Json]:
        """What a check says."""
        return {
            "rows": self.rows,
            "accepted": self.accepted,
            "codes": dict(sorted(self.codes.items())),
            "faults": [*self.faults],
            "complete": self.complete,
        }

    def as_json(self) -> dict[str, Json]:
        """All of it; of very many sources the most frequent."""
        return {
            **self.check_json(),
            "sources": dict(self.sources.most_common(MAX_SOURCES)),
            "other_sources": max(len(self.sources) - MAX_SOURCES, 0),
            "roles": dict(sorted(self.roles.items())),
            "kinds": {kind: self.kinds[kind] for kind in ("reasoning", "calls", "tools")},
            "turns": self.turns.as_json(),
            "characters": self.characters.as_json(),
        }


def profile_of(
    folder: Path, manifest: Manifest, *, max_rows: int = MAX_ROWS, max_seconds: float = MAX_SECONDS
) -> Profile:
    """Check rows as `turnmill check` does, up to so many and for so long, and count what they are like.

    Args:
        folder: the dataset's real directory.
        manifest: of the dataset.
        max_rows: that are looked at.
        max_seconds: after which no further row is.

    Raises:
        UsageError: the file cannot be read, or the dialect of its rows cannot be told.
    """
    found = Profile()
    until = time.monotonic() + max_seconds
    with opened(folder, manifest) as data:
        check = data.check()
        for row in data.rows():
            if found.rows >= max_rows or time.monotonic() > until:
                found.complete = False
                break
            found.add(check.outcome(row.record))
    return found
