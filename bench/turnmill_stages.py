"""Times turnmill's stages on one file of rows, in this process; prints one JSON object.

python bench/turnmill_stages.py ROWS.jsonl MODEL_DIRECTORY
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turnmill.config import Config, load
from turnmill.rendered import Loss
from turnmill.tokens.tokenize import Row
from turnmill.verbs import check, prepare, tokenize
from turnmill.verbs.prepared import publish_prepared
from turnmill.verbs.read import open_sources

Figures = dict[str, float]


def cpu_s() -> float:
    """User and system time of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def timed(figures: dict[str, Figures], stage: str) -> Iterator[None]:
    """Adds the stage's CPU and wall seconds."""
    cpu, wall = cpu_s(), time.perf_counter()
    yield
    figures[stage] = {"cpu_s": cpu_s() - cpu, "wall_s": time.perf_counter() - wall}


def measure(config: Config, output: Path) -> dict[str, Any]:
    """Every stage on its own, then the whole of `prepare` with one worker."""
    figures: dict[str, Figures] = {}
    plan = prepare.plan_of(config)
    recipe = next(iter(plan.recipes.values()))
    line = tokenize.line_of(recipe, accelerate=True)
    with timed(figures, "read + check"):
        tasks = [task for opened in open_sources(config) for task in check.tasks_of(opened, config)]
        found = [outcome for task in tasks for outcome in check.outcomes(task, Counter())]
        rows = [outcome.checked for outcome in found if outcome.checked is not None]
    with timed(figures, "render"):
        rendered = [Row(row.id, row, line.renderer.render(row), Loss()) for row in rows]
    with timed(figures, "tokenize"):
        for start in range(0, len(rendered), tokenize.BATCH):
            line.tokenizing.examples(rendered[start : start + tokenize.BATCH])
    del found, rows, rendered
    with timed(figures, "prepare"):
        plan = prepare.plan_of(config)
        answer = publish_prepared(plan, prepare.run(plan, output.parent / "steps"), output, time.time())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    kept = {key: answer[key] for key in ("examples", "packs", "tokens", "trained_tokens", "fill")}
    return {"rows": answer["rows"]["read"], "stages": figures, "peak_mib": round(peak), **kept}


def main(data: str, model: str) -> None:
    """Measure, and print what was found."""
    flags = [("model.name_or_path", model), ("workers", "1"), ("fit.max_tokens", "4096"), ("dedup.by", "[exact]")]
    config, _ = load(None, flags, [data])
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(measure(config, Path(scratch, "out"))))


if __name__ == "__main__":
    main(*sys.argv[1:])
