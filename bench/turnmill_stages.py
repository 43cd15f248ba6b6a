"""turnmill: read + check, render, tokenize and pack, each on its own.

python bench/turnmill_stages.py ROWS.jsonl MODEL_DIRECTORY [fastokens | words | off]
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import measuring
import numpy as np
from turnmill_options import flags

from turnmill.config import load
from turnmill.rendered import Loss
from turnmill.steps.shards import collecting_rarely
from turnmill.tokens.pack import best_fit_decreasing
from turnmill.tokens.tokenize import Row
from turnmill.verbs import check, prepare, tokenize
from turnmill.verbs.read import open_sources

PACKED = 1_000_000
"""Lengths that are packed: those of the rows, drawn again and again."""


def packed(lengths: Sequence[int], figures: dict[str, measuring.Figures]) -> float:
    """The fill of a million lengths."""
    whole = np.minimum(np.array(lengths), measuring.MAX_TOKENS)
    drawn = np.random.default_rng(0).choice(whole, PACKED).tolist()
    with measuring.timed(figures, "pack"):
        packs = best_fit_decreasing(drawn, measuring.MAX_TOKENS)
    return sum(drawn) / (len(packs) * measuring.MAX_TOKENS)


def main(data: str, model: str, mode: str = "fastokens") -> None:
    """Measure, and print what was found; garbage is collected as rarely as where a step runs."""
    with collecting_rarely():
        measure(data, model, mode)


def measure(data: str, model: str, mode: str) -> None:
    """Stage by stage."""
    config, _ = load(None, flags(model, mode), [data])
    figures: dict[str, measuring.Figures] = {}
    recipe = next(iter(prepare.plan_of(config).recipes.values()))
    line = tokenize.line_of(recipe, accelerate=config.accelerate)
    with measuring.timed(figures, "read + check"):
        tasks = [task for opened in open_sources(config) for task in check.tasks_of(opened, config)]
        found = [outcome for task in tasks for outcome in check.outcomes(task, Counter())]
    rows = [outcome.checked for outcome in found if outcome.checked is not None]
    with measuring.timed(figures, "render"):
        rendered = [Row(row.id, row, line.renderer.render(row), Loss()) for row in rows]
    lengths: list[int] = []
    with measuring.timed(figures, "tokenize"):
        for start in range(0, len(rendered), tokenize.BATCH):
            made = line.tokenizing.examples(rendered[start : start + tokenize.BATCH])
            lengths += [len(one.input_ids) for one in made if not isinstance(one, Exception)]
    fills = line.renderer.fills
    served = fills.served / len(rows) if fills else 0.0
    measuring.answer(len(found), figures, replayed=served, pack_fill=packed(lengths, figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
