"""The right to build a folder: one runner at a time, and what a dead one left is taken over."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec
import pytest

from turnmill.errors import UsageError
from turnmill.files.disk import beside
from turnmill.steps.lease import Held, lease, machine


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "step"


def left(folder: Path, of: str, beat: int = 0) -> Path:
    path = beside(folder, "lease")
    path.write_bytes(msgspec.json.encode(Held("another", of, beat)))
    return path


def test_nothing_is_left_when_it_is_given_back(folder):
    with lease(folder):
        assert beside(folder, "lease").exists()
        folder.mkdir()
    assert list(folder.parent.iterdir()) == [folder]


def test_a_second_runner_of_this_machine_waits(folder):
    order: list[str] = []

    def second() -> None:
        with lease(folder):
            order.append("second")

    with lease(folder):
        other = threading.Thread(target=second)
        other.start()
        order.append("first")
    other.join()
    assert order == ["first", "second"]


def test_what_a_dead_runner_of_this_machine_left_is_taken_over_at_once(folder):
    left(folder, machine())
    with lease(folder, stale_s=1e9):
        assert b"another" not in beside(folder, "lease").read_bytes()


def test_what_a_dead_machine_left_is_taken_over_when_it_is_stale(folder):
    left(folder, "elsewhere")
    started = time.monotonic()
    with lease(folder, stale_s=0.2):
        assert time.monotonic() - started >= 0.2


def test_a_file_cut_short_is_stale_in_the_end(folder):
    beside(folder, "lease").write_bytes(b'{"owner": "an')
    with lease(folder, stale_s=0.1):
        assert beside(folder, "lease").exists()


def test_a_machine_that_lives_keeps_it(folder):
    """Each sign of life starts the wait anew."""
    beats = 8

    def live() -> None:
        for beat in range(1, beats):
            left(folder, "elsewhere", beat)
            gone.wait(0.1)
        beside(folder, "lease").unlink()
        released.set()

    gone, released = threading.Event(), threading.Event()
    left(folder, "elsewhere")
    other = threading.Thread(target=live)
    other.start()
    with lease(folder, stale_s=0.4):
        assert released.is_set()
    other.join()


def test_its_holder_says_that_it_lives(folder):
    with lease(folder, beat_s=0.01):
        seen = {beside(folder, "lease").read_bytes()}
        deadline = time.monotonic() + 10
        while len(seen) < 3 and time.monotonic() < deadline:
            seen.add(beside(folder, "lease").read_bytes())
    assert len(seen) >= 3


def test_who_lost_it_publishes_nothing_and_takes_nothing_away(folder):
    with lease(folder) as held:
        path = left(folder, "elsewhere")
        with pytest.raises(UsageError, match="another runner took over"):
            held.check()
    assert path.exists()
