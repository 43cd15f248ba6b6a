"""Fuzz for long: `python tests/fuzz/run.py --cases 1000000 --seed 1`; exit 1 where something was found."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz.judge import Judge

STEP = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return fuzz(Judge(asked.seed, Path(folder)), range(asked.first, asked.first + asked.cases))


def fuzz(judge: Judge, numbers: range) -> int:
    started, shown = time.perf_counter(), 0
    for first in numbers[::STEP]:
        judge.run(range(first, min(first + STEP, numbers.stop)))
        for found in judge.findings[shown:]:
            print(f"case {found.number} ({found.dialect}): {found.what}", flush=True)
        shown = len(judge.findings)
        rate = judge.cases / (time.perf_counter() - started)
        print(f"{judge.cases:,} cases, {rate:,.0f}/s, {dict(judge.outcomes)}, {shown} findings", flush=True)
    print(f"codes met: {len(judge.codes)}: {dict(judge.codes.most_common())}")
    print(f"slowest case: {judge.slowest[1]} in {judge.slowest[0]:.3f} s")
    return 1 if judge.findings else 0


if __name__ == "__main__":
    sys.exit(main())
