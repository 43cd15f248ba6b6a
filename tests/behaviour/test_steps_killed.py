"""`turnmill steps run` killed at random moments: a step is absent or whole, and the next run gives the same bytes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from published import hashes
from turnmill.files.inventory import verify

SOURCE = """
from turnmill.sources import Pin, PinnedSource

def {name}():
    return PinnedSource(Pin({data!r}, ("{name}.jsonl",)), tokens=1e6, licence="cc0-1.0", dialect="alpaca")
"""
RUN = """
import turnmill.verbs.source_steps as steps
from functools import partial
steps.planned_source = partial(steps.planned_source, shard_bytes=20_000)
from turnmill.cli.app import main
if __name__ == "__main__":
    main()
"""
"""The command with small shards, so that there is something to interrupt."""
NAMES = ("lathe", "mill")


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Path:
    """A folder with the command, and two sources of some hundred rows in a file."""
    folder = tmp_path_factory.mktemp("graph")
    draw = random.Random(2)
    words = ["shaft", "tool", "chip", "feed", "speed", "edge"]
    for name in NAMES:
        rows = [
            {key: " ".join(draw.choices(words, k=draw.randint(3, 60))) for key in ("instruction", "output")}
            for _ in range(400)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "mine.py").write_text("".join(SOURCE.format(name=name, data=str(folder)) for name in NAMES))
    (folder / "run.py").write_text(RUN)
    return folder


def start(graph: Path, cache: Path) -> subprocess.Popen[bytes]:
    targets = [f"{graph / 'mine.py'}:{name}" for name in NAMES]
    command = [sys.executable, graph / "run.py", "steps", "run", *targets, "--cache", cache, "--workers", "2"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(list(map(str, command)), start_new_session=True, stdout=quiet, stderr=quiet)


def finished(cache: Path) -> dict[str, str]:
    """The files of finished steps."""
    return {name: digest for name, digest in hashes(cache).items() if not name.startswith(".")}


@pytest.fixture(scope="module")
def undisturbed(graph, tmp_path_factory) -> dict[str, str]:
    cache = tmp_path_factory.mktemp("whole")
    assert start(graph, cache).wait() == 0
    return finished(cache)


def check_killed(graph: Path, undisturbed: dict[str, str], cache: Path, seed: int, kills: int) -> None:
    draw, longest_s = random.Random(seed), 3.0
    for _ in range(kills):
        run = start(graph, cache)
        try:
            run.wait(draw.uniform(0.3, 1.0) * longest_s)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
        for step in cache.glob("[!.]*"):
            verify(step)
    assert start(graph, cache).wait() == 0
    assert finished(cache) == undisturbed


def test_killed_runners_leave_nothing_half_made(graph, undisturbed, tmp_path):
    check_killed(graph, undisturbed, tmp_path / "cache", seed=1, kills=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_killed_runners_leave_nothing_half_made(graph, undisturbed, tmp_path, seed):
    check_killed(graph, undisturbed, tmp_path / "cache", seed, kills=10)


def test_two_runners_of_one_graph_make_each_step_once(graph, undisturbed, tmp_path):
    cache = tmp_path / "cache"
    runs = [start(graph, cache) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    assert finished(cache) == undisturbed
    assert not list(cache.glob(".*.draft"))
