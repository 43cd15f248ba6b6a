"""The rows of a dataset a page at a time, those that are wanted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.shelf.manifest import Manifest
from turnmill.shelf.reading import Place, opened
from turnmill.shelf.row_facts import RowSummary, Shape, conversation_of, shape_of, source_of, summary_of

if TYPE_CHECKING:
    from turnmill.conversation import Conversation
    from turnmill.verbs.check import Outcome

MAX_SECONDS = 2.0
"""How long rows are looked at for one page."""
ANY, NONE = "any", "none"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are asked for; None asks for all. What is asked of conversations leaves out rows that are none."""

    text: str | None = None
    """Contained in what is said, whatever its case; of a row without a conversation, in the record."""
    code: str | None = None
    """That a row would leave with; `any` of them, or `none`."""
    source: str | None = None
    role: str | None = None
    """Of any turn."""
    min_turns: int | None = None
    max_turns: int | None = None
    min_characters: int | None = None
    max_characters: int | None = None
    reasoning: bool | None = None
    calls: bool | None = None
    tools: bool | None = None

    def takes(self, outcome: Outcome) -> bool:
        """Whether a row is one of them."""
        if not self._takes_code(outcome) or self.source not in (None, source_of(outcome.record)):
            return False
        conversation = conversation_of(outcome)
        if self._asks_for_shape and (conversation is None or not self._takes_shape(shape_of(conversation))):
            return False
        return self.text is None or _says(self.text.lower(), outcome, conversation)

    def _takes_code(self, outcome: Outcome) -> bool:
        code = NONE if outcome.fault is None else outcome.fault.code
        return self.code in (None, code) or (self.code == ANY and code != NONE)

    @property
    def _asks_for_shape(self) -> bool:
        bounds = (self.min_turns, self.max_turns, self.min_characters, self.max_characters)
        return any(asked is not None for asked in (*bounds, self.role, self.reasoning, self.calls, self.tools))

    def _takes_shape(self, shape: Shape) -> bool:
        asked = (
            (self.reasoning, shape.has_reasoning), (self.calls, shape.has_tool_calls), (self.tools, shape.has_tools)
        )  # fmt: skip
        return (
            (self.min_turns or 0) <= shape.turns
            and (self.max_turns is None or shape.turns <= self.max_turns)
            and (self.min_characters or 0) <= shape.characters
            and (self.max_characters is None or shape.characters <= self.max_characters)
            and (self.role is None or self.role in shape.speakers)
            and all(wanted in (None, found) for wanted, found in asked)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the rows that are wanted."""

    rows: Sequence[RowSummary]
    next: Place | None
    """Where to read on; None at the end of the file."""
    scanned: int
    """Rows that were looked at."""


def page_of(
    folder: Path,
    manifest: Manifest,
    wanted: Wanted,
    place: Place,
    limit: int,
    *,
    max_seconds: float = MAX_SECONDS,
) -> Page:
    """The rows from a place on that are wanted, up to so many, or as many as are found in so long.

    Args:
        folder: the dataset's real directory.
        manifest: of the dataset.
        wanted: which rows.
        place: where to begin, from the page before.
        limit: rows of the page.
        max_seconds: after which no further row is looked at, but for the first.

    Raises:
        UsageError: the file cannot be read, or the dialect of its rows cannot be told.
    """
    until = time.monotonic() + max_seconds
    found: list[RowSummary] = []
    scanned = 0
    with opened(folder, manifest) as data:
        check = data.check()
        for row in data.rows(place):
            if len(found) >= limit or (scanned and time.monotonic() > until):
                return Page(found, row.place, scanned)
            scanned += 1
            outcome = check.outcome(row.record)
            if wanted.takes(outcome):
                found.append(summary_of(outcome))
    return Page(found, None, scanned)


def _says(text: str, outcome: Outcome, conversation: Conversation | None) -> bool:
    if conversation is None:
        return text in outcome.record.raw.decode("utf-8", "replace").lower()
    return any(text in message.text.lower() for message in conversation.messages)
