"""The census: what became of every row, and what the examples hold, a source each and together.

Its JSON is what `OUT/report.json` holds and `turnmill census --json` prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from turnmill.rendered import KINDS
from turnmill.repairs.mender import alarms
from turnmill.report.lengths import length_facts

Unit = Literal["tokens", "characters"]
"""What lengths are counted in: characters where there is a template but no tokenizer."""

ROW_COUNTERS = {
    "read": "rows/read",
    "accepted": "rows/accepted",
    "rejected": "rows/rejected",
    "stalled": "rows/stalled",
    "filtered": "rows/filtered",
    "duplicates": "rows/duplicate",
    "contaminated": "rows/contaminated",
    "eval": "rows/eval",
    "unselected": "rows/unselected",
}
"""Disjoint row count → the counter it comes from; `read` is the sum of the others."""
PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
SAMPLES_PER_SOURCE = 3
"""Rows of each source whose trained spans the census shows."""
_OWN_PREFIXES = ("rows/", "codes/", "train/", "eval/", "control/", "repair/", "history/")


class SourceCensus(msgspec.Struct):
    """What was counted of one source."""

    name: str
    counters: dict[str, int]
    """`rows/…`, `codes/<code>`, `repair/<name>`, `read/…`, `render/…`, `tokenize/…`, `fit/…`, and of both sides
    `train/examples`, `train/turns`, `train/examples-of-turns/<turns>`, `train/<unit>/<kind>`, `train/trained/<kind>`
    (`eval/…` the same)."""
    lengths: list[int]
    """Tokens (or characters) of each training example, in any order."""
    samples: list[dict[str, Any]] = []
    """Rows as `{"source", "row", "id", "trained": [texts]}`."""


def census(sources: Sequence[SourceCensus], *, unit: Unit = "tokens") -> dict[str, Any]:
    """Every source's counts, and their sums.

    Returns:
        JSON with the keys `unit, rows, codes, repairs, examples, turns, tokens, trained_tokens, trained_share,
        lengths, length_bins, turn_bins, history, eval, per_source`; where `unit` is characters, `characters` and
        `trained_characters` stand in place of `tokens` and `trained_tokens`. Tokens are `{"total": n, <kind>: n}`,
        lengths `{"1": n, …, "max": n}` (empty without examples).

    Raises:
        ValueError: a source's rows do not sum: read = accepted + rejected + stalled + filtered + duplicates +
            contaminated + eval + unselected.
    """
    together: Counter[str] = Counter()
    lengths: list[int] = []
    for source in sources:
        together.update(source.counters)
        lengths += source.lengths
    whole = _part("all sources", together, lengths, unit)
    named = {source.name: _per_source(source, unit) for source in sources}
    return {"unit": unit, **whole, "per_source": named}


def row_counts(name: str, counters: Mapping[str, int]) -> dict[str, int]:
    """The disjoint row counts of a source.

    Raises:
        ValueError: they do not sum to the rows read.
    """
    rows = {row: counters.get(counter, 0) for row, counter in ROW_COUNTERS.items()}
    left = sum(rows.values()) - rows["read"]
    if left != rows["read"]:
        parts = ", ".join(f"{count:,} {row}" for row, count in rows.items() if row != "read")
        raise ValueError(f"{name}: {rows['read']:,} rows were read, but {left:,} are accounted for ({parts})")
    return rows


def percentiles(lengths: Iterable[int]) -> dict[str, int]:
    """The lengths that 1, 5, 25, … 99 % of the examples do not exceed (nearest rank), and the greatest."""
    ordered = sorted(lengths)
    if not ordered:
        return {}
    ranks = {str(share): ordered[-(-share * len(ordered) // 100) - 1] for share in PERCENTILES}
    return {**ranks, "max": ordered[-1]}


def _per_source(source: SourceCensus, unit: Unit) -> dict[str, Any]:
    counts = {key: n for key, n in sorted(source.counters.items()) if n and not key.startswith(_OWN_PREFIXES)}
    part = _part(source.name, source.counters, source.lengths, unit)
    return {
        **part,
        "repair_alarms": alarms(source.name, source.counters),
        "counts": counts,
        "samples": source.samples[:SAMPLES_PER_SOURCE],
    }


def _history(counters: Mapping[str, int]) -> dict[str, Any]:
    """How many trained turns stand behind what inference would prompt; empty where nobody looked."""
    turns, prompted = counters.get("history/turns", 0), counters.get("history/as-prompted", 0)
    if not turns:
        return {}
    return {
        "turns": turns,
        "as_prompted": prompted,
        "parity": prompted / turns,
        "without_reasoning": counters.get("history/without-reasoning", 0),
    }


def _part(name: str, counters: Mapping[str, int], lengths: Sequence[int], unit: Unit) -> dict[str, Any]:
    return {
        "rows": row_counts(name, counters),
        "codes": _most_first(counters, "codes/"),
        "repairs": _most_first(counters, "repair/"),
        **_side(counters, "train", unit),
        "lengths": percentiles(lengths),
        "length_bins": length_facts(lengths),
        "turn_bins": _turn_bins(counters),
        "history": _history(counters),
        "eval": _side(counters, "eval", unit),
    }


def _turn_bins(counters: Mapping[str, int]) -> list[list[int]]:
    """How many training examples have how many trained turns, from one turn on: `[[turns, examples], …]`."""
    found = _most_first(counters, "train/examples-of-turns/")
    turns = {int(name): count for name, count in found.items()}
    return [[number, turns.get(number, 0)] for number in range(1, max(turns, default=0) + 1)]


def _side(counters: Mapping[str, int], side: str, unit: Unit) -> dict[str, Any]:
    """Examples, turns and tokens of the training rows, or of those held out."""
    all_of = _by_kind(counters, f"{side}/{unit}/")
    trained = _by_kind(counters, f"{side}/trained/")
    return {
        "examples": counters.get(f"{side}/examples", 0),
        "turns": counters.get(f"{side}/turns", 0),
        unit: all_of,
        f"trained_{unit}": trained,
        "trained_share": round(trained["total"] / all_of["total"], 4) if all_of["total"] else 0.0,
    }


def _by_kind(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    kinds: dict[str, int] = {kind: n for kind in KINDS if (n := counters.get(prefix + kind, 0))}
    return {"total": sum(kinds.values()), **kinds}


def _most_first(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    found = {key.removeprefix(prefix): n for key, n in counters.items() if key.startswith(prefix) and n}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
