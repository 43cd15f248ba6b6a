"""Clocks that go backwards, and two machines on one disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chats import chat, numbered
from published import Published
from turnmill.errors import UsageError
from turnmill.files.publish import claim

ROWS = "".join(json.dumps(chat(*row)) + "\n" for row in numbered(40)).encode()
ANOTHER_MACHINE = ("unshare", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child")
PREPARE = "hostname {host}; exec {python} -c 'from turnmill.cli.app import main; main()' prepare {data} --model smollm2"


@pytest.fixture(scope="session")
def machines() -> None:
    if subprocess.run([*ANOTHER_MACHINE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("nobody but root makes machines of names and processes of their own")


def on_machine(host: str, data: Path, output: Path, cache: Path) -> subprocess.Popen[str]:
    line = PREPARE.format(host=host, python=sys.executable, data=data) + f" --output {output} --cache {cache}"
    return subprocess.Popen([*ANOTHER_MACHINE, "sh", "-c", line], stderr=subprocess.PIPE, text=True)


def test_two_machines_build_every_step_of_one_cache_once(machines, tmp_path, prepare_rows):
    data = tmp_path / "prepared.jsonl"
    data.write_bytes(ROWS)
    runs = [on_machine(host, data, tmp_path / host, tmp_path / "cache") for host in ("east", "west")]
    assert [(run.communicate()[1], run.returncode)[1] for run in runs] == [0, 0]
    prepare_rows(ROWS)
    alone = Published(tmp_path / "out").sha256
    assert [Published(tmp_path / host).sha256 for host in ("east", "west")] == [alone, alone]
    made = [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir() and not path.name.startswith(".")]
    assert sorted(made) == sorted(path.name for path in (tmp_path / ".out.steps").glob("[!.]*"))
    assert not list((tmp_path / "cache").glob(".*.draft"))


def test_who_has_a_place_is_named_with_the_machine(tmp_path):
    code = "import sys,time; from pathlib import Path; from turnmill.files.publish import claim\n"
    code += "with claim(Path(sys.argv[1])): print('has it', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code, tmp_path / "out"], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "has it\n"
        (tmp_path / ".out.owner.lock").write_text("41 east")
        with (
            pytest.raises(UsageError, match="process 41 of east; waited") as caught,
            claim(tmp_path / "out", wait_s=0.1),
        ):
            pass
        holder.kill()
    assert caught.value.next_step == "ssh east ps -p 41"


def test_a_clock_that_goes_backwards_changes_nothing(prepare_rows, tmp_path, monkeypatch):
    prepare_rows(ROWS)
    before = Published(tmp_path / "out").sha256
    for path in [tmp_path / "prepared.jsonl", *(tmp_path / ".out.steps").rglob("*")]:
        os.utime(path, (2_000_000_000, 2_000_000_000))  # written in what is now the future
    now = iter(range(1_000_000_000, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(now)))
    prepare_rows(ROWS)
    assert Published(tmp_path / "out").sha256 == before
    assert json.loads((tmp_path / "out" / "run.json").read_text())["seconds"] >= 0
