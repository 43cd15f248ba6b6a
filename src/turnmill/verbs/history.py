"""What each `render.history` would cost, measured on the first rows of each source."""

from __future__ import annotations

import dataclasses
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from turnmill.conversation import Json
from turnmill.rendering.history import Mode
from turnmill.verbs.rows import rows_of
from turnmill.verbs.tokenize import line_of

if TYPE_CHECKING:
    from turnmill.verbs.prepare import Plan

MODES: tuple[Mode, ...] = ("final", "auto", "per-turn")
MEASURED_ROWS = 256
"""Rows of each source that are measured."""


def history_costs(plan: Plan) -> dict[str, dict[str, Json]]:
    """Examples and tokens of each mode, by source: `{"rows": n, mode: {"examples": n, "tokens": n}, …}`.

    They are those of the first `MEASURED_ROWS` rows that come through check and filter; nothing is deduplicated or
    held out.

    Args:
        plan: of the run.
    """
    costs: dict[str, dict[str, Json]] = {}
    for opened in plan.sources:
        kept = (row.checked for row in rows_of(opened, plan.config, Counter()) if row.fault is None)
        rows = list(islice((row for row in kept if row is not None), MEASURED_ROWS))
        recipe = plan.recipes[opened.source.name]
        line = line_of(recipe)
        costs[opened.source.name] = {"rows": len(rows)}
        for mode in MODES:
            asked = dataclasses.replace(recipe, render=dataclasses.replace(recipe.render, history=mode))
            lengths = [len(part.example.input_ids) for made in line.run(rows, asked) for part in made.parts]
            costs[opened.source.name][mode] = {"examples": len(lengths), "tokens": sum(lengths)}
        line.clear()
    return costs
