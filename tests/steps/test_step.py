from dataclasses import asdict

import pytest

from turnmill.options import Check, Read
from turnmill.steps.step import Step

STEP = Step("check", 1, {"read": asdict(Read()), "seed": 0, "text": "é"}, ("mine/a.jsonl abc",))


def test_the_fingerprint_of_a_recipe_never_changes() -> None:
    recipe = Step("check", 3, {"b": [1, 2.5, None], "a": {"é": "x", "on": True}}, ("one 1", "two 2"))
    assert recipe.fingerprint == "798b2ba7ef9befc5465aec57eeffea9f90b9f16f61660e680d5a68c3945ec174"
    assert recipe.folder_name == f"check-{recipe.fingerprint[:32]}"


def test_the_order_of_keys_does_not_count() -> None:
    turned = dict(reversed(STEP.params.items()))
    assert Step(STEP.name, STEP.version, turned, STEP.inputs).fingerprint == STEP.fingerprint


@pytest.mark.parametrize(
    "other",
    [
        Step("select", 1, STEP.params, STEP.inputs),
        Step("check", 2, STEP.params, STEP.inputs),
        Step("check", 1, STEP.params | {"seed": 1}, STEP.inputs),
        Step("check", 1, STEP.params | {"check": asdict(Check())}, STEP.inputs),
        Step("check", 1, STEP.params, (*STEP.inputs, "mine/b.jsonl abc")),
        Step("check", 1, STEP.params, ()),
    ],
)
def test_whatever_changes_the_output_changes_the_folder(other: Step) -> None:
    assert other.folder_name != STEP.folder_name
