"""Runs steps on a Ray cluster of two nodes, and kills a worker in the middle: `python on_ray.py CACHE TARGET...`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from click import echo

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from ray_clusters import Cluster, workers_at_work

TURNMILL = Path(sys.executable).with_name("turnmill")


def main() -> None:
    """Start the cluster, run, kill, and stop the cluster."""
    cluster = Cluster()
    try:
        cluster.start(2)
        echo(f"   two nodes at {cluster.address}")
        cache, *targets = sys.argv[1:]
        command = [str(TURNMILL), "steps", "run", *targets, "--cache", cache, "--executor", "ray"]
        run = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": cluster.address})
        echo("   killed: " + (killed_while(run) or "nobody, the run was too short"))
        if run.wait():
            raise SystemExit(run.returncode)
    finally:
        cluster.stop()


def killed_while(run: subprocess.Popen[bytes]) -> str:
    """Process number of the worker that was killed, "" where the run ended before."""
    while run.poll() is None:
        for worker in workers_at_work():
            os.kill(worker, signal.SIGKILL)
            return f"worker {worker}"
        time.sleep(0.02)
    return ""


if __name__ == "__main__":
    main()
