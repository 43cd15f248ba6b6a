from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from turnmill.contract import check
from turnmill.conversation import Conversation
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected
from turnmill.repairs import Mending
from turnmill.repairs.mender import Mender


class Mended(NamedTuple):
    """A record behind its dialect and repairs."""

    conversation: Conversation
    touched: list[str]

    @property
    def outcome(self) -> Any:
        """Neutral turns of what the contract admits, else the code."""
        try:
            return neutral_turns(check(self.conversation))
        except Rejected as fault:
            return fault.code

    @property
    def turns(self) -> list[list[Any]]:
        return neutral_turns(self.conversation)


@pytest.fixture
def mend() -> Callable[..., Mended]:
    """Mends a record, or the messages of one in pairs of role and content."""

    def call(names: str, record: Any, dialect: str = "openai", **mapping: Any) -> Mended:
        if isinstance(record, list):
            record = {"messages": [{"role": said[0], "content": said[1]} for said in record]}
        touched: list[str] = []
        given = Mapping(**mapping)
        mender = Mender(names.split(","), Mending(dialect, given))
        conversation = convert(mender.record(record, touched), dialects.get(dialect), Reading(given))
        return Mended(mender.conversation(conversation, touched), touched)

    return call
