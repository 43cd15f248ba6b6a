from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from turnmill.commands import PROCESS, Running

FOREVER = "import time; print('began', flush=True); time.sleep(600)"
DEAF = "import signal, time; signal.signal(2, signal.SIG_IGN); print('began', flush=True); time.sleep(600)"
BEGIN = """
import os, sys
from pathlib import Path
from turnmill.commands import Running
place = Path(sys.argv[1])
Running([sys.executable, "-c", sys.argv[2]], place, place / "log", os.environ)
while "began" not in (place / "log").read_text():
    pass
os.kill(os.getpid(), 9)
"""


def begun(place: Path, program: str) -> Running:
    running = Running([sys.executable, "-c", program], place, place / "log", os.environ)
    wait_for(lambda: "began" in (place / "log").read_text() or running.ended() is not None)
    return running


def wait_for(is_so: object, within_s: float = 30) -> None:
    until = time.monotonic() + within_s
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def test_what_it_says_and_how_it_ends_is_known(tmp_path: Path) -> None:
    running = begun(tmp_path, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    wait_for(lambda: running.ended() is not None)
    assert (running.ended(), sorted((tmp_path / "log").read_text().split())) == (3, ["err", "out"])


@pytest.mark.parametrize(("program", "signalled"), [(FOREVER, 1), (DEAF, -signal.SIGKILL)])
def test_it_is_stopped_one_way_or_the_other(tmp_path: Path, program: str, signalled: int) -> None:
    code = begun(tmp_path, program).stop(grace_s=5 if program == FOREVER else 0.2)
    assert code in (signalled, -signal.SIGINT)


def test_what_a_killed_process_began_is_ended_before_the_next_begins(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", BEGIN, str(tmp_path), DEAF], check=False)
    orphan = int((tmp_path / PROCESS).read_text())
    assert is_alive(orphan)
    second = begun(tmp_path, "print('second')")
    assert not is_alive(orphan)
    wait_for(lambda: second.ended() is not None)
    assert "second" in (tmp_path / "log").read_text()
