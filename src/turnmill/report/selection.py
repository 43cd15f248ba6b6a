"""What a selection did to its pool: sizes, perplexities, familiarity and groups, before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.selection import CODES, FAMILIARITY, Groups, Scored, Selected, perplexity


def pool_facts(scored: Scored, chosen: Selected, groups: Groups, *, is_scored: bool) -> dict[str, Json]:
    """JSON: `pool`, `selected` and `control`, each `{rows, tokens, trained_tokens, perplexity, familiarity, groups}`.

    Args:
        scored: the pool.
        chosen: what was decided of it.
        groups: of its rows.
        is_scored: whether perplexities are known.
    """
    everything = np.arange(scored.rows)
    facts: dict[str, Json] = {
        "left": {CODES[code]: int(count) for code, count in enumerate(np.bincount(chosen.codes)) if code and count}
    }
    for name, rows in (("pool", everything), ("selected", chosen.order), ("control", chosen.control)):
        if name != "control" or len(rows):
            facts[name] = _facts(scored, chosen, groups, rows, is_scored=is_scored)
    return facts


def _facts(
    scored: Scored, chosen: Selected, groups: Groups, rows: NDArray[np.int64], *, is_scored: bool
) -> dict[str, Json]:
    own = _sizes(scored, chosen, rows, is_scored=is_scored)
    order = rows[np.argsort(groups.of[rows], kind="stable")]
    borders = np.searchsorted(groups.of[order], np.arange(len(groups.names) + 1))
    parts = {
        name: _sizes(scored, chosen, order[borders[number] : borders[number + 1]], is_scored=is_scored)
        for number, name in enumerate(groups.names)
    }
    own["groups"] = dict(sorted(parts.items(), key=lambda item: -item[1]["rows"]))
    return own


def _sizes(scored: Scored, chosen: Selected, rows: NDArray[np.int64], *, is_scored: bool) -> dict[str, Any]:
    sizes: dict[str, Any] = {
        "rows": len(rows),
        "tokens": int(scored.tokens[rows].sum()),
        "trained_tokens": int(scored.trained_tokens[rows].sum()),
    }
    if is_scored:
        counts = np.bincount(chosen.familiarity[rows], minlength=len(FAMILIARITY)).tolist()
        sizes["familiarity"] = dict(zip(FAMILIARITY, counts, strict=True))
        sizes["perplexity"] = distribution(perplexity(scored.mean_nll[rows]))
    return sizes


def distribution(values: NDArray[np.float64]) -> dict[str, float]:
    """Least, quartiles, greatest and mean of the finite values; empty where there are none."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return {}
    low, median, high = np.quantile(finite, [0.25, 0.5, 0.75]).tolist()
    return {
        "min": float(finite.min()), "quartile_1": low, "median": median, "quartile_3": high,
        "max": float(finite.max()), "mean": float(finite.mean()),
    }  # fmt: skip
