"""turnmill: the whole of `prepare`, with every file it writes.

python bench/turnmill_prepare.py ROWS.jsonl MODEL_DIRECTORY [fastokens | words | off] [PROCESSES]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import measuring
from turnmill_options import flags

from turnmill.config import load
from turnmill.verbs import prepare, tokenize
from turnmill.verbs.prepared import publish_prepared


def main(data: str, model: str, mode: str = "fastokens", workers: str = "1") -> None:
    """Measure, and print what was found."""
    config, _ = load(None, flags(model, mode, workers), [data])
    figures: dict[str, measuring.Figures] = {}
    plan = prepare.plan_of(config)
    tokenize.line_of(next(iter(plan.recipes.values())), accelerate=config.accelerate)  # loaded, as the peers' are
    with tempfile.TemporaryDirectory() as scratch, measuring.timed(figures, "prepare"):
        plan = prepare.plan_of(config)
        found = publish_prepared(plan, prepare.run(plan, Path(scratch, "steps")), Path(scratch, "out"), time.time())
    kept = {key: found[key] for key in ("examples", "packs", "tokens", "trained_tokens", "fill")}
    measuring.answer(found["rows"]["read"], figures, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
