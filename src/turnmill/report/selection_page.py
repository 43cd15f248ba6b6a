"""A selection in the census page: the pool beside what was chosen and the random control, by bucket and by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from turnmill.report.page import bar, legend, section, table

SIDES = ("pool", "selected", "control")
BUCKET_COLOURS = {"familiar": "#3fa45b", "typical": "#4c8fd6", "unfamiliar": "#d4703c"}
QUANTILES = ("min", "quartile_1", "median", "quartile_3", "max", "mean")
NOTE = (
    "What the selection did to the rows that it chose from. The control is as large and drawn at random: a choice is "
    "worth its cost where a model trained on it beats one trained on the control."
)


def selection_section(selection: Mapping[str, Any] | None) -> Iterator[str]:
    """The section of a report's `selection`; nothing where every row stays."""
    if selection is None:
        return
    sides = [side for side in SIDES if side in selection]
    parts = [
        _headline(selection),
        table(["", "rows", "tokens", "trained tokens"], [[side, *_sizes(selection[side])] for side in sides]),
        *_buckets(selection, sides),
        *_perplexities(selection, sides),
        *_groups(selection, sides),
        *_left(selection["left"]),
    ]
    yield section("Selection", "".join(parts), NOTE)


def _headline(selection: Mapping[str, Any]) -> str:
    ((unit, budget),) = selection["budget"].items()
    told = "no budget" if budget is None else f"a budget of {budget:,} {unit.replace('_', ' ')}"
    return f"<p>Strategy <strong>{escape(selection['strategy'])}</strong>, {told}.</p>"


def _sizes(facts: Mapping[str, Any]) -> list[str]:
    return [f"{facts[name]:,}" for name in ("rows", "tokens", "trained_tokens")]


def _buckets(selection: Mapping[str, Any], sides: Sequence[str]) -> Iterator[str]:
    """Rows of each bucket, as numbers and as bars."""
    found = {side: selection[side]["familiarity"] for side in sides if "familiarity" in selection[side]}
    if not found:
        return
    rows = [
        [side, *(_of(counts[bucket], sum(counts.values())) for bucket in BUCKET_COLOURS)]
        for side, counts in found.items()
    ]
    yield "<h3>How well the scoring model knows the rows</h3>" + table(["", *BUCKET_COLOURS], rows)
    yield from (f"<p>{side}</p>{bar(counts, BUCKET_COLOURS)}" for side, counts in found.items())
    yield legend(BUCKET_COLOURS, BUCKET_COLOURS)


def _perplexities(selection: Mapping[str, Any], sides: Sequence[str]) -> Iterator[str]:
    found = {side: selection[side].get("perplexity") for side in sides}
    rows = [[side, *(f"{facts[name]:,.2f}" for name in QUANTILES)] for side, facts in found.items() if facts]
    if rows:
        headings = ["", *(name.replace("_", " ") for name in QUANTILES)]
        yield "<h3>Perplexity of the trained tokens</h3>" + table(headings, rows)


def _groups(selection: Mapping[str, Any], sides: Sequence[str]) -> Iterator[str]:
    """Rows of each group, of as many as there are on each side."""
    found = [selection[side]["groups"] for side in sides]
    if len(found[0]) < 2:
        return
    totals = [selection[side]["rows"] for side in sides]
    rows = [
        [name, *(_of(groups.get(name, {}).get("rows", 0), total) for groups, total in zip(found, totals, strict=True))]
        for name in found[0]
    ]
    yield "<h3>Groups</h3>" + table(["group", *sides], rows)


def _left(codes: Mapping[str, int]) -> Iterator[str]:
    if codes:
        rows = [[code, f"{count:,}"] for code, count in codes.items()]
        yield "<h3>Rows of the pool that were not chosen</h3>" + table(["code", "rows"], rows)


def _of(count: int, total: int) -> str:
    return f"{count:,} ({count / total:.0%})" if total else "0"
