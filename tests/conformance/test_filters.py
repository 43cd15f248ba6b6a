"""What every filter promises, over the whole registry."""

from __future__ import annotations

import pytest

from turnmill.codes import CODES
from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.filters import filters

NAMES = filters.names()
PLAIN = Conversation((Message("user", "q"), Message("assistant", "a", "final")))


@pytest.mark.parametrize("name", NAMES)
def test_keeps_a_plain_row(name):
    assert filters.get(name)(check(PLAIN)) is None


@pytest.mark.parametrize("name", NAMES)
def test_its_code_is_documented(name):
    assert CODES[name].stage == "filter"


@pytest.mark.parametrize("name", NAMES)
def test_says_what_it_is_in_one_line(name):
    assert 20 < len(filters.summary(name)) <= 120
