"""Every row of the sources, one by one: checked and filtered, or with the code it leaves with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turnmill.conversation import Checked, Conversation, Json
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected
from turnmill.files.quarantine import LeftClass
from turnmill.files.record import Record
from turnmill.options import Filter, Source
from turnmill.verbs.check import CheckTask, Outcome, outcomes, tasks_of
from turnmill.verbs.filter import settled, verdict
from turnmill.verbs.read import OpenSource

if TYPE_CHECKING:
    from turnmill.config import Config


@dataclass(frozen=True, slots=True)
class ReadRow:
    """One row behind check and the filters."""

    record: Record
    source: Source
    stage: str
    """The verb that let it go; `filter` where it stays."""
    conversation: Conversation | None = None
    """None where the record could not be converted."""
    checked: Checked | None = None
    """None where it was rejected; a row that a filter lets go was checked."""
    class_: LeftClass | None = None
    fault: Rejected | None = None
    """Why it leaves, None where it stays."""

    def as_json(self) -> dict[str, Json]:
        """One line of `check --json`; `repairs` only where the source names some."""
        fault, checked = self.fault, self.checked if self.fault is None else None
        detail = {"at": fault.at, "stage": self.stage, "class": self.class_} if fault else None
        return {
            "row": self.record.row,
            "source_file": self.record.source_file,
            "source_line": self.record.source_line,
            "accepted": fault is None,
            "code": fault.code if fault else None,
            "message": fault.message if fault else None,
            "detail": detail,
            "id": checked.id if checked else None,
            "turns": neutral_turns(checked) if checked else None,
            **({"repairs": self.repairs} if self.source.repairs else {}),
        }

    @property
    def repairs(self) -> list[str]:
        """Names of the repairs that changed the row."""
        names: list[str] = self.conversation.meta.get("repairs", []) if self.conversation else []
        return names


def rows_of(opened: OpenSource, config: Config, counts: Counter[str], only_row: int | None = None) -> Iterator[ReadRow]:
    """The source's rows in order; never holds more than a batch.

    Args:
        opened: the source.
        config: its `read`, `check` and `filter` sections, with the source's overrides.
        counts: takes `rows/read`, `rows/checked`, `rows/<class>`, `read/<what>`, `repair/<name>`; of rejected rows
            `codes/<code>`, which the health limit asks for, and of those that a filter lets go `filters/<code>`.
        only_row: leave out shards that do not hold the row of this number.
    """
    options = settled(config.of(opened.source).filter)
    for task in tasks_of(opened, config):
        if only_row is not None and not _holds(task, only_row):
            continue
        for outcome in outcomes(task, counts):
            row = _row(outcome, opened.source, options)
            _count(row, counts)
            yield row


def _holds(task: CheckTask, row: int) -> bool:
    return task.shard.first_row <= row < task.shard.first_row + task.shard.rows


def _row(outcome: Outcome, source: Source, options: Filter) -> ReadRow:
    record, checked = outcome.record, outcome.checked
    if checked is None:
        return ReadRow(record, source, outcome.stage, outcome.conversation, None, "rejected", outcome.fault)
    leaves = verdict(checked, options)
    class_, fault = leaves if leaves is not None else (None, None)
    return ReadRow(record, source, "filter", checked, checked, class_, fault)


def _count(row: ReadRow, counts: Counter[str]) -> None:
    counts["rows/read"] += 1
    counts["rows/checked"] += row.checked is not None
    if row.fault is not None:
        counts[f"rows/{row.class_}"] += 1
        counts[f"{'filters' if row.checked else 'codes'}/{row.fault.code}"] += 1
