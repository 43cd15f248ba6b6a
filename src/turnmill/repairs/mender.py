"""All repairs of one source, in order; and the alarm where a source needs one too often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from turnmill.conversation import Conversation, Json
from turnmill.repairs import Mending, RecordRepair, repairs

Row = TypeVar("Row", dict[str, Json], Conversation)

ALARM_SHARE = 0.1
"""A source that needs a repair on more of its rows is named: its recorder is wrong, not its rows."""


class Mender:
    """The repairs that a source names.

    Raises:
        UnknownName: no such repair.
    """

    def __init__(self, names: Sequence[str], mending: Mending) -> None:
        self._mending = mending
        found = [(name, repairs.get(name)) for name in names]
        self._of_records = [(name, repair) for name, repair in found if isinstance(repair, RecordRepair)]
        self._of_conversations = [(name, repair) for name, repair in found if not isinstance(repair, RecordRepair)]

    @property
    def mends_records(self) -> bool:
        """Whether any repair takes records."""
        return bool(self._of_records)

    def record(self, record: dict[str, Json], touched: list[str]) -> dict[str, Json]:
        """The record behind the record repairs; `touched` takes the names of those that changed it."""
        return self._mended(self._of_records, record, touched)

    def conversation(self, conversation: Conversation, touched: list[str]) -> Conversation:
        """The conversation behind the conversation repairs; `touched` takes the names of those that changed it."""
        return self._mended(self._of_conversations, conversation, touched)

    def _mended(self, named: Sequence[tuple[str, Callable[[Row, Mending], Row]]], row: Row, touched: list[str]) -> Row:
        for name, repair in named:
            mended = repair(row, self._mending)
            if mended != row:
                touched.append(name)
            row = mended
        return row


def with_repairs(conversation: Conversation, touched: Sequence[str]) -> Conversation:
    """The conversation with the names of the repairs that changed it in `meta`, none where none did."""
    if not touched:
        return conversation
    return msgspec.structs.replace(conversation, meta={**conversation.meta, "repairs": list(touched)})


def alarms(source: str, counts: Mapping[str, int]) -> list[str]:
    """A warning for each repair that a source needs on over a tenth of its rows.

    Args:
        source: its name.
        counts: `rows/read` and `repair/<name>`.
    """
    rows = counts.get("rows/read", 0)
    return [
        f"source {source!r}: {name} mended {count:,} of {rows:,} rows ({count / rows:.1%}): see how the source was made"
        for key, count in sorted(counts.items())
        if (name := key.removeprefix("repair/")) != key and count > ALARM_SHARE * rows
    ]
