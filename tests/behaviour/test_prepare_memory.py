"""Peak memory of `turnmill prepare` hangs on the batch, not on the file."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from chats import chat

RUN = """
import resource, sys, turnmill.verbs.read as read
from functools import partial
read.plan = partial(read.plan, shard_bytes=5_000_000)
from turnmill.cli.app import run
if __name__ == "__main__":
    code = run(sys.argv[1:])
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(max(peaks) // 1024, file=sys.stderr)
    sys.exit(code)
"""
WORDS = [f"{''.join(random.Random(n).choices('abcdefghijklmnopqrstuvwxyz', k=2 + n % 9))}" for n in range(5000)]


def write_rows(path: Path, megabytes: int) -> None:
    draw, written = random.Random(2), 0
    with open(path, "w") as file:
        while written < megabytes * 1_000_000:
            texts = [" ".join(draw.choices(WORDS, k=draw.randint(20, 300))) for _ in range(2 * draw.randint(1, 6))]
            written += file.write(json.dumps(chat(*texts)) + "\n")


NEAR = ("--dedup.by", "[exact, near]", "--split.near", "true", "--split.fraction", "0.1")


def peak_mib(folder: Path, megabytes: int, workers: int, more: tuple[str, ...]) -> int:
    """MiB of the largest process of a run."""
    script, data = folder / "prepare.py", folder / f"rows-{megabytes}.jsonl"
    script.write_text(RUN)
    write_rows(data, megabytes)
    flags = ["--model", "smollm2", "--output", str(folder / f"out-{megabytes}"), "--workers", str(workers), *more]
    done = subprocess.run([sys.executable, script, "prepare", data, *flags], capture_output=True, text=True, check=True)
    return int(done.stderr.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "more"), [(1, ()), (2, ()), (2, NEAR)])
def test_four_times_the_data_take_hardly_more_memory(tmp_path, workers, more):
    small, large = (peak_mib(tmp_path, megabytes, workers, more) for megabytes in (20, 80))
    assert large <= 1.3 * small, f"{small} MiB for 20 MB, {large} MiB for 80 MB"
