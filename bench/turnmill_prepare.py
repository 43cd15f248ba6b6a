"""turnmill: the whole of `prepare`, with every file it writes.

python bench/turnmill_prepare.py ROWS.jsonl MODEL_DIRECTORY [fastokens | words | off] [PROCESSES]

One row is prepared before, as the peers' trainers are made on one, so that neither imports nor the model are in the
timer; nothing is learned of a row that is seen once.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import measuring
from turnmill_options import flags

from turnmill.config import Config, load
from turnmill.verbs import prepare
from turnmill.verbs.prepared import publish_prepared


def prepared(config: Config, scratch: Path) -> dict[str, Any]:
    """The manifest of what was prepared."""
    plan = prepare.plan_of(config)
    out = scratch / "out"
    return publish_prepared(plan, prepare.run(plan, prepare.cache_of(out, None)), out, time.time())


def main(data: str, model: str, mode: str = "fastokens", workers: str = "1") -> None:
    """Measure, and print what was found."""
    figures: dict[str, measuring.Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        first = Path(scratch, "first.jsonl")
        with open(data, "rb") as file:
            first.write_bytes(file.readline())
        prepared(load(None, flags(model, mode), [str(first)])[0], Path(scratch, "first"))
        config, _ = load(None, flags(model, mode, workers), [data])
        with measuring.timed(figures, "prepare"):
            found = prepared(config, Path(scratch, "all"))
    kept = {key: found[key] for key in ("examples", "packs", "tokens", "trained_tokens", "fill")}
    measuring.answer(found["rows"]["read"], figures, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
