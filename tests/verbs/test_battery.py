"""The rows of the regression battery."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import turnmill
from turnmill.verbs.battery import FOLDER, PREFIX, battery_sources

SETS = [source.data[0] for source in battery_sources()]


def test_each_skill_is_a_set_that_is_only_watched_if_it_fails():
    names = ["arithmetic", "code", "instruction-following", "knowledge", "plain-chat", "tool-use"]
    assert [source.name for source in battery_sources()] == [f"{PREFIX}{name}" for name in names]
    assert all(source.optional for source in battery_sources())


@pytest.mark.parametrize("path", SETS, ids=lambda path: Path(path).stem)
def test_every_row_is_sound_and_its_own(path):
    rows = list(turnmill.read(path))
    assert len(rows) >= 24
    assert [row.fault for row in rows if row.fault is not None] == []
    assert len({row.checked.id for row in rows}) == len(rows)


def test_sums_are_right():
    text = (FOLDER / "arithmetic.jsonl").read_text("utf-8")
    lines = re.findall(r'"(\d+) ([-+×÷]) (\d+) = (\d+)"', text)
    assert len(lines) >= 16
    for first, sign, second, result in lines:
        a, b = int(first), int(second)
        assert {"+": a + b, "-": a - b, "×": a * b, "÷": a / b}[sign] == int(result)


def test_the_rows_have_a_licence():
    assert "turnmill" in (FOLDER / "LICENSE.md").read_text("utf-8")
