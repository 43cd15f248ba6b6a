from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.errors import Rejected
from turnmill.filters import filters
from turnmill.options import Filter
from turnmill.verbs.filter import settled


@pytest.fixture(scope="session")
def refused() -> Callable[..., Rejected | None]:
    """Why a filter refuses an answer, under options of its section; None keeps it."""

    def call(name: str, answer: str, question: str = "q", **options: Any) -> Rejected | None:
        section = name.replace("-", "_")
        given = Filter(use=(name,))
        given = replace(given, **{section: replace(getattr(given, section), **options)})
        said = (Message("user", question, recorded=0), Message("assistant", answer, "final", recorded=1))
        return filters.get(name)(check(Conversation(said)), settled(given))

    return call
