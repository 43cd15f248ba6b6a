from __future__ import annotations

import pytest

from turnmill.steps.changes import differences
from turnmill.steps.step import Step


def step(version: int = 1, inputs: tuple[str, ...] = ("a",), **params) -> Step:
    return Step("fit", version, params, inputs)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (step(most=1), step(most=2), ["most: 1 → 2"]),
        (step(fit={"most": 1, "cut": "no"}), step(fit={"most": 1, "cut": "yes"}), ["fit.cut: 'no' → 'yes'"]),
        (step(), step(new=[1]), ["new: nothing → [1]"]),
        (step(1), step(2), ["version: 1 → 2"]),
        (step(inputs=("a",)), step(inputs=("b",)), ["its inputs"]),
        (step(most=None), step(most=None), []),
        (step(kwargs={}), step(kwargs={"a": 1}), ["kwargs: {} → nothing", "kwargs.a: nothing → 1"]),
    ],
)
def test_what_is_otherwise_is_named(before, after, said):
    assert differences(before, after) == said
