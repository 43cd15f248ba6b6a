from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turnmill.shelf.metrics_mirror import MetricsMirror

Line = dict[str, Any]


def lines(*steps: int) -> list[Line]:
    return [{"step": step, "loss": 1 / step} for step in steps]


class Run:
    """A run elsewhere, which tells its metrics in small parts."""

    def __init__(self, limit: int = 2) -> None:
        self.said: list[Line] = []
        self.limit = limit

    def ask(self, after: int) -> Line:
        left = [one for one in self.said if one["step"] > after]
        kept = [one for at, one in enumerate(left) if at < self.limit or one["step"] == left[self.limit - 1]["step"]]
        return {"metrics": kept, "truncated": len(kept) < len(left)}


def here(path: Path) -> list[Line]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def test_what_is_logged_comes_here_once(path: Path) -> None:
    run = Run()
    mirror = MetricsMirror(path, run.ask)
    for steps in ((1,), (2, 3, 4, 5), (6,), ()):
        run.said += lines(*steps)
        mirror.follow()
        assert here(path) == run.said


def test_a_line_more_of_the_last_step_comes_too(path: Path) -> None:
    run = Run()
    mirror = MetricsMirror(path, run.ask)
    run.said += lines(1, 2)
    mirror.follow()
    run.said += [{"step": 2, "eval/loss": 0.5, "best": True}]
    mirror.follow()
    assert here(path) == run.said


@pytest.mark.parametrize("cut", [0, 5])
def test_another_worker_goes_on_where_the_first_one_was(path: Path, cut: int) -> None:
    run = Run()
    run.said += lines(1, 2, 3)
    MetricsMirror(path, run.ask).follow()
    path.write_bytes(path.read_bytes()[: -cut or None])
    run.said += lines(4)
    MetricsMirror(path, run.ask).follow()
    assert here(path) == run.said


def test_a_run_that_goes_back_to_a_checkpoint_loses_nothing_here(path: Path) -> None:
    run = Run()
    mirror = MetricsMirror(path, run.ask)
    run.said = lines(1, 2, 3)
    mirror.follow()
    run.said = lines(1, 2)
    mirror.follow()
    run.said = lines(1, 2, 3, 4)
    mirror.follow()
    assert here(path) == run.said


def test_where_nothing_was_logged_there_is_no_file(path: Path) -> None:
    MetricsMirror(path, Run().ask).follow()
    assert not path.exists()
