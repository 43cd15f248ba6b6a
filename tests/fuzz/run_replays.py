"""Replay for long: `python tests/fuzz/run_replays.py --cases 1000000 --seed 1`; exit 1 where a replay was wrong."""

from __future__ import annotations

import argparse
import sys
import time
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import assets
from fuzz.replays import ReplayFuzz

SHOWN_EVERY = 1000
SHOWN = 25


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="replays to compare")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", type=Path, nargs="*", default=[], help="directories of more templates")
    asked = parser.parse_args()
    corpus = [assets.trl_templates(), assets.llama_cpp_templates()]
    fuzz = ReplayFuzz(asked.seed, [*corpus, *asked.templates])
    started = time.perf_counter()
    for number in count():
        fuzz.case(number)
        is_done = fuzz.counts["replayed"] >= asked.cases
        if is_done or number % SHOWN_EVERY == SHOWN_EVERY - 1:
            rate = fuzz.counts["replayed"] / (time.perf_counter() - started)
            print(f"{len(fuzz.paths)} templates, {number + 1:,} shapes, {rate:,.0f}/s, {dict(fuzz.counts)}", flush=True)
        if is_done:
            break
    for wrong in fuzz.wrong[:SHOWN]:
        print(f"{wrong.template}, {wrong.shape}: {wrong.why}")
    return 1 if fuzz.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
