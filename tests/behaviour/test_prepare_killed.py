"""`turnmill prepare` killed at random moments: OUT is absent or whole, and the next run gives the same bytes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chats import chat
from published import Published, hashes
from turnmill.files.inventory import verify

RUN = """
import sys, turnmill.verbs.read as read
from functools import partial
read.plan = partial(read.plan, shard_bytes=20_000)
import turnmill.verbs.prepare as prepare
prepare.run = partial(prepare.run, partitions=4)
from turnmill.cli.app import main
if __name__ == "__main__":
    main()
"""
"""The command with small shards and several partitions, so that there is something to interrupt."""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    draw = random.Random(1)
    words = ["lathe", "mill", "shaft", "tool", "chip", "feed", "speed", "edge"]
    path = tmp_path_factory.mktemp("data") / "rows.jsonl"
    rows = [chat(*(" ".join(draw.choices(words, k=draw.randint(3, 40))) for _ in range(4))) for _ in range(400)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("script") / "prepare.py"
    path.write_text(RUN)
    return path


def start(script: Path, data: Path, output: Path, *flags: str) -> subprocess.Popen:
    arguments = ["prepare", str(data), "--model", "smollm2", "--output", str(output), "--workers", "2", *flags]
    return subprocess.Popen([sys.executable, script, *arguments], start_new_session=True, stderr=subprocess.DEVNULL)


def finish(run: subprocess.Popen) -> None:
    assert run.wait() == 0


@pytest.fixture(scope="module")
def undisturbed(script, data, tmp_path_factory) -> Published:
    output = tmp_path_factory.mktemp("whole") / "out"
    finish(start(script, data, output))
    return Published(output)


def kill_once(run: subprocess.Popen, after_s: float, *, workers_too: bool = True) -> bool:
    """Kill the run after a while, at once with its workers or before they know; False where it was done before."""
    try:
        run.wait(after_s)
    except subprocess.TimeoutExpired:
        if workers_too:
            os.killpg(run.pid, signal.SIGKILL)
        run.kill()
        run.wait()
        return True
    return False


def interrupt(script, data, output: Path, draw: random.Random, kills: int) -> None:
    """Start and kill again and again; what is visible is whole each time.

    A run that was done before its moment came is thrown away, and the moments come sooner: so many are killed on a
    machine of any speed.
    """
    killed, longest_s = 0, 2.5
    while killed < kills:
        after_s = draw.uniform(0.2, 1.0) * longest_s
        if kill_once(start(script, data, output), after_s, workers_too=draw.random() < 0.7):
            killed += 1
        else:
            longest_s = max(0.3, 0.8 * longest_s)
            shutil.rmtree(output)
            shutil.rmtree(output.parent / f".{output.name}.steps")
            continue
        if output.exists():
            verify(output)
        visible = [path for path in output.parent.iterdir() if not path.name.startswith(".")]
        assert visible in ([], [output])
        for step in (output.parent / f".{output.name}.steps").glob("[!.]*"):
            verify(step)


def finished(steps: Path) -> dict[str, str]:
    """The files of finished steps; what says who builds one may outlive a killed run, and is taken over by the next."""
    return {name: digest for name, digest in hashes(steps).items() if not name.endswith((".lock", ".lease"))}


def check_interrupted(script, data, undisturbed: Published, tmp_path: Path, seed: int, kills: int) -> None:
    output = tmp_path / "out"
    interrupt(script, data, output, random.Random(seed), kills)
    finish(start(script, data, output))
    assert Published(output).sha256 == undisturbed.sha256
    assert not list(tmp_path.glob(".out.draft")) + list(tmp_path.glob(".out.old"))
    assert finished(tmp_path / ".out.steps") == finished(undisturbed.folder.parent / ".out.steps")


def test_killed_runs_leave_nothing_half_visible(script, data, undisturbed, tmp_path):
    check_interrupted(script, data, undisturbed, tmp_path, seed=3, kills=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_killed_runs_leave_nothing_half_visible(script, data, undisturbed, tmp_path, seed):
    check_interrupted(script, data, undisturbed, tmp_path, seed, kills=10)


@pytest.mark.slow
def test_a_killed_run_leaves_the_output_of_before(script, data, undisturbed, tmp_path):
    output = tmp_path / "out"
    finish(start(script, data, output))
    draw = random.Random(5)
    for number in range(20):
        kill_once(start(script, data, output, "--seed", str(number), "--loss.turns", "last"), draw.uniform(0.6, 3.0))
        if output.exists():
            verify(output)
    finish(start(script, data, output))
    assert Published(output).sha256 == undisturbed.sha256
