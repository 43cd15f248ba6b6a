"""Repairs: a file each, mends that a source asks for by name, made before its rows are checked.

A repair is of one of two kinds. A *conversation repair* takes what the dialect read. A *record repair* takes the record
as it was parsed, before its dialect: for faults that no dialect reads (lone surrogates, numbers for texts). Record
repairs run first, then conversation repairs; those of a kind in the order in which the source names them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Mapping
from turnmill.options import DEFAULT_THINK_TAGS
from turnmill.registry import Registry


@dataclass(frozen=True, slots=True)
class Mending:
    """What a repair is given besides the row."""

    dialect: str = "openai"
    mapping: Mapping = field(default_factory=Mapping)
    think_tags: tuple[str, ...] = DEFAULT_THINK_TAGS


ConversationRepair = Callable[[Conversation, Mending], Conversation]
"""Gives the conversation as it was where there is nothing to mend; raises `Rejected` where it cannot be mended."""


class RecordRepair:
    """A mend of the record before its dialect reads it: it gives a new record, or the same where there is none.

    Texts of the record may hold lone surrogates.
    """

    def __init__(self, mend: Callable[[dict[str, Json], Mending], dict[str, Json]]) -> None:
        self._mend = mend
        functools.update_wrapper(self, mend)

    def __call__(self, record: dict[str, Json], mending: Mending) -> dict[str, Json]:
        """The record, mended."""
        return self._mend(record, mending)


repairs: Registry[ConversationRepair | RecordRepair] = Registry("repairs")
conversation_repair = repairs.register


def record_repair(name: str) -> Callable[[Callable[[dict[str, Json], Mending], dict[str, Json]]], RecordRepair]:
    """Decorator that enters a record repair under `name`."""

    def enter(mend: Callable[[dict[str, Json], Mending], dict[str, Json]]) -> RecordRepair:
        repair = RecordRepair(mend)
        repairs.register(name)(repair)
        return repair

    return enter
