"""Prepare 1x, 10x and 100x the rows with two processes, and watch how much memory each holds of its own while it runs.

python bench/soak.py [--rows 2000]

Memory is what is private to a process and lies in RAM (`RssAnon` of Linux): pages of files that are mapped or cached
are the system's, which takes them back when it needs them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from run import RESULTS, line, rows_file, table

TURNMILL = Path(sys.executable).with_name("turnmill")
TIMES = (1, 10, 100)
STRETCHES = 5
"""Of a run: the greatest memory of each is printed."""
EVERY_S = 0.25
OPTIONS = (
    "--model",
    "smollm2",
    "--workers",
    "2",
    "--split.fraction",
    "0.02",
    "--score.scorer",
    "ngram",
    "--select.rows",
)


def tree(root: int) -> Iterator[int]:
    """A process and all below it."""
    yield root
    for task in Path(f"/proc/{root}/task").glob("*/children"):
        for child in task.read_text().split():
            yield from tree(int(child))


def held_mib(process: int) -> float:
    """What a process holds of its own."""
    for said in Path(f"/proc/{process}/status").read_text().splitlines():
        if said.startswith("RssAnon"):
            return int(said.split()[1]) / 1024
    return 0.0


def watched(rows: int) -> tuple[float, list[tuple[float, float]]]:
    """Seconds of a run, and at each look the MiB of the driver and of the largest process below it."""
    output = RESULTS / "soak" / "out"
    shutil.rmtree(output.parent, ignore_errors=True)
    output.parent.mkdir(parents=True)
    command = [TURNMILL, "prepare", rows_file(rows), "--output", output, *OPTIONS, rows // 2]
    with open(output.parent / "said.txt", "w") as said:
        run = subprocess.Popen(list(map(str, command)), stdout=said, stderr=said)
        started, looks = time.perf_counter(), []
        while run.poll() is None:
            try:
                driver, *workers = [held_mib(process) for process in tree(run.pid)]
                looks.append((driver, max(workers, default=0.0)))
            except (FileNotFoundError, ProcessLookupError):  # one ended between two looks
                pass
            time.sleep(EVERY_S)
    if run.returncode:
        raise SystemExit((output.parent / "said.txt").read_text())
    return time.perf_counter() - started, looks


def main() -> None:
    """Print a table: sizes and processes down, stretches of the run across."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    asked = parser.parse_args()
    table("MiB held, the most in each fifth of the run", *(f"fifth {number + 1}" for number in range(STRETCHES)))
    for rows in (times * asked.rows for times in TIMES):
        seconds, looks = watched(rows)
        for place, who in enumerate(("driver", "largest worker")):
            cut = [
                looks[number * len(looks) // STRETCHES :][: -(-len(looks) // STRETCHES)] for number in range(STRETCHES)
            ]
            line(
                f"{rows:,} rows ({seconds:.0f} s), {who}", *(f"{max(look[place] for look in part):.0f}" for part in cut)
            )
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
