"""What every filter promises, over the whole registry."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmill.codes import CODES
from turnmill.contract import check
from turnmill.conversation import Conversation, Message
from turnmill.filters import filters
from turnmill.options import Filter
from turnmill.verbs.filter import settled

NAMES = filters.names()
PLAIN = Conversation((Message("user", "q"), Message("assistant", "a", "final")))
OPTIONS = settled(Filter(use=tuple(NAMES)))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip())


@pytest.mark.parametrize("name", NAMES)
def test_keeps_a_plain_row(name):
    assert filters.get(name)(check(PLAIN), OPTIONS) is None


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(texts=st.lists(TEXTS, min_size=2, max_size=4).filter(lambda texts: len(texts) % 2 == 0))
def test_judges_any_row_the_same_twice(name, texts):
    said = [Message("assistant", t, "final") if n % 2 else Message("user", t) for n, t in enumerate(texts)]
    row = check(Conversation(tuple(said)))
    first, second = (filters.get(name)(row, OPTIONS) for _ in range(2))
    assert (first and str(first)) == (second and str(second))
    assert first is None or (first.code == name and len(first.message) < 300)


@pytest.mark.parametrize("name", NAMES)
def test_its_code_is_documented(name):
    assert CODES[name].stage == "filter"


@pytest.mark.parametrize("name", NAMES)
def test_says_what_it_is_in_one_line(name):
    assert 20 < len(filters.summary(name)) <= 120
