"""Lengths of examples: a histogram against the limit, and the limit that would keep nearly all of them whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

STEP = 256
"""A suggested limit is a multiple of it: what accelerators like."""
WHOLE_SHARE = 99
"""Percent of the examples that a suggested limit keeps whole."""
BINS = 24
WIDTH, HEIGHT, FOOT = 720, 180, 26


def length_facts(lengths: Iterable[int]) -> dict[str, Any]:
    """A histogram, and the suggested limit.

    Args:
        lengths: tokens of each example, in any order.

    Returns:
        `{"bins": [[end, examples], …], "suggested": limit, "longer": examples over it}`; empty without examples.
    """
    ordered = sorted(lengths)
    if not ordered:
        return {}
    width = max(1, -(-ordered[-1] // BINS))
    counts = Counter((length - 1) // width for length in ordered)
    suggested = -(-ordered[-(-WHOLE_SHARE * len(ordered) // 100) - 1] // STEP) * STEP
    return {
        "bins": [[(number + 1) * width, counts[number]] for number in range(max(counts) + 1)],
        "suggested": suggested,
        "longer": sum(length > suggested for length in ordered),
    }


def histogram(bins: Sequence[Sequence[int]], limit: int | None, unit: str) -> str:
    """The bins as an inline SVG; a dashed line is the limit.

    Written by hand rather than with a plotting library: it needs no extra, takes the page's own colours, and every bar
    carries its figures as text.
    """
    if not bins:
        return ""
    end = max(bins[-1][0], limit or 0)
    tallest = max(count for _, count in bins) or 1
    width = bins[0][0]
    bars = []
    for upper, count in bins:
        left, tall = (upper - width) / end * WIDTH, count / tallest * (HEIGHT - 20)
        shape = f'x="{left:.1f}" y="{HEIGHT - tall:.1f}" width="{max(width / end * WIDTH - 1, 1):.1f}"'
        said = f"{upper - width + 1:,} to {upper:,} {unit}: {count:,} examples"
        bars.append(f'<rect {shape} height="{tall:.1f}"><title>{escape(said)}</title></rect>')
    marks = [f'<text x="0" y="{HEIGHT + 18}">1</text>', _mark(end, end)]
    marks += [_mark(end / 2, end), f'<text x="4" y="12">{tallest:,} examples</text>']
    if limit:
        place = min(limit / end * WIDTH, WIDTH - 1)
        marks.append(f'<line x1="{place:.1f}" x2="{place:.1f}" y1="0" y2="{HEIGHT}" stroke-dasharray="5 4"/>')
        marks.append(f'<text x="{place - 6:.1f}" y="26" text-anchor="end">limit {limit:,}</text>')
    size = f'viewBox="0 0 {WIDTH} {HEIGHT + FOOT}" role="img" aria-label="Examples by their {escape(unit)}"'
    return f'<svg class="plot" {size}>{"".join(bars)}{"".join(marks)}</svg>'


def _mark(value: float, end: float) -> str:
    anchor = "end" if value == end else "middle"
    return f'<text x="{value / end * WIDTH:.1f}" y="{HEIGHT + 18}" text-anchor="{anchor}">{value:,.0f}</text>'
