"""`turnmill train` killed at random moments while it saves: a run that goes on is the one that nobody killed."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from training_runs import FAST, losses, train, weights_of
from turnmill.files.inventory import verify

OPTIONS = {**FAST, "train.epochs": 30, "train.save_every": 1, "train.gradient_accumulation_steps": 1}


def start(out: Path, model: Path, output: Path) -> subprocess.Popen[bytes]:
    """A run that goes on from whatever is there."""
    saved = [path for path in output.parent.glob(".model.train/checkpoint-*") if (path / "turnmill.json").is_file()]
    flags = [f"--{name}={value}" for name, value in OPTIONS.items()]
    command = ["train", str(out), "--train.model", str(model), "--output", str(output), *flags]
    command += ["--resume"] if saved else []
    return subprocess.Popen([sys.executable, "-m", "turnmill", *command], stderr=subprocess.DEVNULL)


def lines(journal: Path) -> int:
    return len(journal.read_bytes().splitlines()) if journal.is_file() else 0


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nobody_had_killed_it(tiny, out, tmp_path):
    draw, output = random.Random(3), tmp_path / "model"
    journal = tmp_path / ".model.train" / "metrics.jsonl"
    for _ in range(4):
        run, before = start(out, tiny, output), lines(journal)
        while run.poll() is None and lines(journal) <= before + 3:
            time.sleep(0.01)  # another process is all there is to wait for
        time.sleep(draw.random() * 0.5)
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert not output.exists()
    assert start(out, tiny, output).wait() == 0
    train(out, tmp_path / "whole", tiny, epochs=30, gradient_accumulation_steps=1)
    assert losses(output) == losses(tmp_path / "whole")
    assert all((values == weights_of(output)[name]).all() for name, values in weights_of(tmp_path / "whole").items())
    assert verify(output)["step"] == len(losses(output))
    assert {path.name for path in tmp_path.iterdir()} <= {"model", ".model.lock", ".whole.lock", "whole"}
