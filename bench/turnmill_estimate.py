"""turnmill: what an epoch holds, estimated, counted row by row, or prepared.

python bench/turnmill_estimate.py ROWS.jsonl [estimate | count | prepare]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measuring

from turnmill.config import load
from turnmill.verbs import prepare, tokenize
from turnmill.verbs.estimate import of_data
from turnmill.verbs.prepared import publish_prepared

OPTIONS = {
    "model.name_or_path": "smollm2", "fit.max_tokens": "4096", "workers": "1", "health.max_rejected": "1",
    "pack.materialise": "false",
}  # fmt: skip


def main(data: str, what: str = "estimate") -> None:
    """Measure, and print what was found."""
    exact = {"estimate.exact": str(what == "count").lower()}
    config, _ = load(None, [*(OPTIONS | exact).items()], [data])
    plan = prepare.plan_of(config)
    tokenize.line_of(next(iter(plan.recipes.values())), accelerate=True)  # loaded, and its faster ways are proven
    figures: dict[str, measuring.Figures] = {}
    found: Any
    with tempfile.TemporaryDirectory() as scratch, measuring.timed(figures, what):
        plan = prepare.plan_of(config, is_hashed=what == "prepare")
        if what == "prepare":
            found = publish_prepared(plan, prepare.run(plan, Path(scratch, "steps")), Path(scratch, "out"), time.time())
        else:
            found = of_data(plan, 1)
    rows = found["rows"]["read"] if what == "prepare" else found["rows"]
    kept = {key: found[key] for key in ("tokens", "trained_tokens", "packs", "looked_at") if key in found}
    measuring.answer(rows, figures, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
