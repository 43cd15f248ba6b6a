"""Two processes of this machine learn what one learns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from training_runs import FAST, losses, metrics, train, weights_of


def torchrun(*arguments: object) -> subprocess.Popen[str]:
    """`turnmill train` on two processes."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "turnmill"]
    given = {**FAST, "train.gradient_accumulation_steps": 1, "train.device": "cpu"}
    flags = [f"--{name}={value}" for name, value in given.items()]
    command = [*launch, "train", *flags, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, out + err


@pytest.mark.slow
@pytest.mark.parametrize("packing", ["on", "off"])
def test_two_processes_learn_what_one_learns(tiny, out, tmp_path, packing):
    ways = [f"--train.packing={packing}", "--train.epochs=2", "--train.eval_every=4"]
    code, said = finished(torchrun(out, "--train.model", tiny, "--output", tmp_path / "two", *ways))
    assert code == 0, said
    options = {"packing": packing, "epochs": 2, "eval_every": 4, "gradient_accumulation_steps": 2}
    train(out, tmp_path / "one", tiny, **options)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=2e-5)
    evaluated = [
        [line["eval/loss"] for line in metrics(tmp_path / name) if "eval/loss" in line] for name in ("one", "two")
    ]
    assert evaluated[1] == pytest.approx(evaluated[0], abs=2e-5)
    one, two = weights_of(tmp_path / "one"), weights_of(tmp_path / "two")
    assert all(two[name] == pytest.approx(values, abs=5e-4) for name, values in one.items())


@pytest.mark.slow
def test_two_processes_that_are_stopped_go_on(tiny, out, tmp_path):
    ways = [out, "--train.model", tiny, "--train.epochs=40"]
    code, said = finished(torchrun(*ways, "--output", tmp_path / "whole"))
    assert code == 0, said
    stopped = torchrun(*ways, "--output", tmp_path / "parts")
    journal = tmp_path / ".parts.train" / "metrics.jsonl"
    while stopped.poll() is None and not (journal.is_file() and len(journal.read_text().splitlines()) > 3):
        time.sleep(0.05)  # the other process is all there is to wait for
    stopped.send_signal(signal.SIGINT)
    finished(stopped)
    assert list((tmp_path / ".parts.train").glob("checkpoint-*"))
    code, said = finished(torchrun(*ways, "--output", tmp_path / "parts", "--resume"))
    assert code == 0, said
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
