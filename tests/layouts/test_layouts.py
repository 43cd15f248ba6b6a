"""How public chat sets lay out their rows (`layouts.jsonl`), in rows of our own: what is read without being told, what
a mapping reads, and what is refused.

A case has `name` and `record`, perhaps the source's `mapping` or an `explicit` dialect (else `auto` must find
`dialect`), and one of `turns` (neutral form, perhaps with `weights`), `code` (the row is rejected) and `refused` (part
of what `auto` says).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnmill.contract import check
from turnmill.conversation import Checked
from turnmill.dialects import Mapping, Reading, convert, dialects
from turnmill.dialects.detect import detect
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected, UsageError

CASES = [json.loads(line) for line in (Path(__file__).parent / "layouts.jsonl").read_text().splitlines()]
READ = [case for case in CASES if "turns" in case]
REJECTED = [case for case in CASES if "code" in case]
REFUSED = [case for case in CASES if "refused" in case]


def named(cases: list[dict]) -> dict:
    return {"argvalues": cases, "ids": [case["name"] for case in cases]}


def read(case: dict) -> Checked:
    mapping = Mapping(**case.get("mapping", {}))
    name = case.get("explicit") or detect([case["record"]], mapping).name
    assert name == case.get("dialect", name)
    return check(convert(case["record"], dialects.get(name), Reading(mapping)))


@pytest.mark.parametrize("case", **named(READ))
def test_a_layout_is_read(case):
    row = read(case)
    assert neutral_turns(row) == case["turns"]
    if "weights" in case:
        assert [message.weight for message in row.messages] == case["weights"]


@pytest.mark.parametrize("case", **named(REJECTED))
def test_a_layout_that_is_not_read_rejects_its_rows_by_name(case):
    with pytest.raises(Rejected) as caught:
        read(case)
    assert caught.value.code == case["code"]


@pytest.mark.parametrize("case", **named(REFUSED))
def test_a_layout_without_answers_to_learn_is_refused(case):
    with pytest.raises(UsageError, match=case["refused"]):
        read(case)


def test_there_are_many_layouts_each_with_its_own_name():
    assert len({case["name"] for case in CASES}) == len(CASES) > 90
    assert len(READ) + len(REJECTED) + len(REFUSED) == len(CASES)
