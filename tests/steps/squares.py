"""A small step for the tests, runnable in a process of its own: python squares.py CACHE EXECUTOR [SHARD_THAT_WAITS]."""

import sys
from functools import partial
from pathlib import Path

from turnmill.executors import executors
from turnmill.steps.build import Engine, build
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step

STEP = Step("squares", 1, {"power": 2}, ("numbers abc",))
SHARDS = list(range(6))


def square(waits: int | None, shard: int, folder: Path) -> ShardResult:
    if shard == waits:
        sys.stdout.write(f"waiting in {shard}\n")
        sys.stdout.flush()
        sys.stdin.read()
    (folder / "square.txt").write_text(str(shard**2))
    return ShardResult({"squares/made": 1, "squares/sum": shard**2}, extra=[shard])


def total(draft: Path, results: list[ShardResult]) -> dict:
    (draft / "total.txt").write_text(str(sum(result.counters["squares/sum"] for result in results)))
    return {"squares/shards": [result.extra[0] for result in results]}


if __name__ == "__main__":
    waits = int(sys.argv[3]) if len(sys.argv) > 3 else None
    engine = Engine(executors.get(sys.argv[2]), workers=2)
    build(STEP, Path(sys.argv[1]), SHARDS, partial(square, waits), finish=total, engine=engine)
