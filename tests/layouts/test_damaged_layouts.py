"""Rows of every layout with something broken inside: a dialect reads or rejects them, and what is read can be told."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from damaged_records import damaged
from turnmill.codes import CODES
from turnmill.contract import check
from turnmill.conversation import Checked
from turnmill.dialects import Mapping, Reading, convert, dialects, writers
from turnmill.dialects.detect import detect
from turnmill.dialects.sessions import sessions
from turnmill.dialects.writing import write_record
from turnmill.errors import Rejected, UsageError

CASES = [json.loads(line) for line in (Path(__file__).parent / "layouts.jsonl").read_text().splitlines()]
ROUNDS = 40
"""Damaged copies of each layout and dialect; a seed makes them the same ones in every run."""


def read(record: dict, name: str, mapping: Mapping) -> Checked | str:
    """The row, or the code of its fault."""
    try:
        return check(convert(record, dialects.get(name), Reading(mapping)))
    except Rejected as rejected:
        return rejected.code


FOREIGN = sorted({case["dialect"] for case in CASES if "dialect" in case})
"""The dialects of public layouts of rows; sessions are damaged beside these, our own rows in the tests of theirs."""


def write(row: Checked, name: str) -> dict | None:
    try:
        return write_record(row, name)
    except Rejected:
        return None


def test_every_dialect_has_a_layout():
    assert {*FOREIGN, *sessions, "turnmill"} == set(dialects.names())


@pytest.mark.parametrize("name", FOREIGN)
def test_a_damaged_row_is_read_or_rejected(name):
    draw = random.Random(name)
    written = 0
    for case in CASES:
        mapping = Mapping(**case["mapping"]) if case.get("dialect") == name and "mapping" in case else Mapping()
        for _ in range(ROUNDS):
            record = damaged(case["record"], draw)
            before = repr(record)
            row = read(record, name, mapping)
            assert repr(record) == before
            assert not isinstance(row, str) or row in CODES
            if not isinstance(row, str):
                written += sum(write(row, target) is not None for target in writers)
    assert written > 20


def test_a_damaged_row_is_told_or_refused():
    draw = random.Random(1)
    told = set()
    for case in CASES * ROUNDS:
        try:
            told.add(detect([damaged(case["record"], draw)], Mapping(**case.get("mapping", {}))).name)
        except UsageError as refused:
            told.add(bool(refused.next_step))
    assert told == {*FOREIGN, True}
