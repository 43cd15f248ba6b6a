"""A few thousand inputs that nobody meant: `make fuzz` runs as many as it is told."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from fuzz.damage import LAYOUTS, case
from fuzz.judge import Judge
from turnmill.dialects import dialects

CASES = 2000


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> Judge:
    judge = Judge(3, tmp_path_factory.mktemp("fuzz"))
    judge.run(range(CASES))
    return judge


def test_every_input_is_a_row_or_a_coded_fault_and_every_row_is_read_back(judged):
    assert judged.findings == []


def test_the_inputs_reach_far(judged):
    assert judged.outcomes["accepted"] > CASES / 3
    assert judged.outcomes["written"] > CASES / 3
    assert len(judged.codes) > 35


def test_a_case_is_the_same_whenever_it_is_drawn():
    assert [case(3, number) for number in range(40)] == [case(3, number) for number in range(40)]
    assert len({case(3, number) for number in range(40)}) > 35


BROKEN = {
    "another exception": lambda record, reading: 1 / 0,
    "a changed record": lambda record, reading: record.clear() or {},
    "a hang": lambda record, reading: next(None for _ in iter(int, 1) if _),
}


@pytest.mark.parametrize("what", BROKEN)
def test_the_judge_sees_what_is_wrong(monkeypatch, tmp_path: Path, what):
    before = copy.deepcopy(LAYOUTS)
    dialects.get("openai")
    monkeypatch.setitem(dialects._plugins, "openai", BROKEN[what])
    monkeypatch.setattr("fuzz.judge.LIMIT_S", 0.2)
    judge = Judge(3, tmp_path)
    judge.run(range(2, 3))
    assert judge.findings
    assert before == LAYOUTS
