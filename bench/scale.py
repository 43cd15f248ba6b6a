"""Prepare with one and two processes and on a Ray cluster of this machine, over 1x and 10x the rows.

python bench/scale.py [--rows 2000] [--rounds 2]

Each run is a command of its own, with nothing cached; the cluster has two cores and is started before. Wall seconds:
what a person waits for; conversations per second of them. Every executor's output is the same byte for byte, which is
checked here, too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from run import RESULTS, line, rows_file, table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from ray_clusters import Cluster

TURNMILL = Path(sys.executable).with_name("turnmill")
WAYS = {
    "1 process": ("--workers", "1"),
    "2 processes": ("--workers", "2"),
    "Ray, 2 cores": ("--executor", "ray"),
}


def prepared(rows: Path, options: tuple[str, ...], address: str) -> tuple[float, str]:
    """Wall seconds of one run, and the hash of all that it published."""
    output = RESULTS / "scale" / "out"
    shutil.rmtree(output.parent, ignore_errors=True)
    command = [TURNMILL, "prepare", rows, "--model", "smollm2", "--output", output, *options]
    started = time.perf_counter()
    environment = {**os.environ, "RAY_ADDRESS": address}
    subprocess.run(list(map(str, command)), check=True, capture_output=True, env=environment)
    seconds = time.perf_counter() - started
    manifest = json.loads((output / "manifest.json").read_text())
    return seconds, str(hash(tuple((one["path"], one["sha256"]) for one in manifest["files"])))


def main() -> None:
    """Print a table: ways down, rows across."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    sizes = [asked.rows, 10 * asked.rows]
    files = {size: rows_file(size) for size in sizes}
    found: dict[tuple[str, int], list[float]] = {}
    outputs: dict[int, set[str]] = {size: set() for size in sizes}
    cluster = Cluster()
    try:
        cluster.start(2)
        for _ in range(asked.rounds):
            for size in sizes:
                for way, options in WAYS.items():
                    seconds, digest = prepared(files[size], options, cluster.address)
                    found.setdefault((way, size), []).append(seconds)
                    outputs[size].add(digest)
    finally:
        cluster.stop()
    same = all(len(digests) == 1 for digests in outputs.values())
    print(f"load {os.getloadavg()[0]:.1f}; every way gives the same bytes: {same}")
    table("", *(f"{size:,} rows: {what}" for size in sizes for what in ("s", "rows/s", "times one process")))
    for way in WAYS:
        cells = []
        for size in sizes:
            seconds, alone = median(found[way, size]), median(found["1 process", size])
            cells += [f"{seconds:.1f}", f"{size / seconds:,.0f}", f"{alone / seconds:.2f}"]
        line(way, *cells)


if __name__ == "__main__":
    main()
