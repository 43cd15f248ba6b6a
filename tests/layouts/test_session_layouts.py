"""How agents write their sessions (`sessions.jsonl`), in lines of our own; whole, and with something broken inside.

A case has `name`, `dialect`, `lines` and `rows`: of each row the file gives its turns, or the code that it leaves with.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from damaged_records import damaged
from session_lines import outcome, outcomes, rows_of
from turnmill.codes import CODES
from turnmill.dialects.sessions import sessions, tell_session

CASES = [json.loads(line) for line in (Path(__file__).parent / "sessions.jsonl").read_text("utf-8").splitlines()]
ROUNDS = 60
"""Damaged copies of each; a seed makes them the same ones in every run."""


def named(case: dict) -> str:
    return case["name"]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_session_is_told_and_gathered(case):
    assert tell_session(case["lines"]).name == case["dialect"]
    assert outcomes(case["dialect"], case["lines"]) == case["rows"]


def test_every_session_dialect_is_here():
    assert {case["dialect"] for case in CASES} == set(sessions)
    assert len({case["name"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_damaged_session_is_read_or_leaves_by_a_code(case):
    draw = random.Random(case["name"])
    kept = 0
    for _ in range(ROUNDS):
        lines = damaged({"lines": case["lines"]}, draw).get("lines")
        for row in rows_of(case["dialect"], lines if isinstance(lines, list) else []):
            found = outcome(case["dialect"], row)
            assert not isinstance(found, str) or found in CODES
            kept += not isinstance(found, str)
    assert kept > 5


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_session_cut_anywhere_is_read_or_leaves_by_a_code(case):
    raw = "".join(json.dumps(line) + "\n" for line in case["lines"]).encode()
    for end in range(0, len(raw), 97):
        rows = outcomes(case["dialect"], raw[:end].split(b"\n"))
        assert all(not isinstance(row, str) or row in CODES for row in rows)
