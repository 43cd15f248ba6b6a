"""Commands in a process of their own, with the memory that they took."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

RUN = """
import re, sys
from turnmill.cli.app import run
code = run(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1], file=sys.stderr)
sys.exit(code)
"""


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str
    peak_mib: int


def run(*arguments: str | Path, before: tuple[str, ...] = (), timeout_s: float = 300.0) -> Ran:
    """Run one command line; `before` are words before the interpreter."""
    command = [*before, sys.executable, "-c", RUN, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    *said, peak_kib = done.stderr.splitlines()
    return Ran(done.returncode, done.stdout, "\n".join(said), int(peak_kib) // 1024)
