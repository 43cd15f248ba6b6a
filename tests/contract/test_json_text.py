from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmill.contract.json_text import JsonFault, strict_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_reads_every_json_value_as_it_was(value):
    assert strict_json(json.dumps(value)) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "not-json"),
        ("{'a': 1}", "not-json"),
        ("{} {}", "not-json"),
        ("1" * 5000, "not-json"),
        ("[" * 100_000, "not-json"),
        ('{"a": 1, "a": 1}', "duplicate-key"),
        ('[{"a": {"b": 0, "b": 0}}]', "duplicate-key"),
        ("[NaN]", "non-finite"),
        ("-Infinity", "non-finite"),
        ('{"a": -1e999}', "non-finite"),
    ],
)
def test_names_what_is_wrong(text, kind):
    with pytest.raises(JsonFault) as caught:
        strict_json(text)
    assert caught.value.kind == kind
