"""Line plots as SVG inside a page: no script, nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 760, 260
LEFT, RIGHT, TOP, BOTTOM = 88, 12, 12, 34
MOST_POINTS = 600
"""Of a line; more are averaged in groups of neighbours."""
COLOURS = ("#4c8fd6", "#d4703c", "#3fa45b", "#9a7fd1", "#b0678f", "#7a9e9f", "#d6a13c")
TICKS = 5


class Line(NamedTuple):
    """One line of a plot."""

    name: str
    points: Sequence[tuple[float, float]]
    """By x."""


def line_plot(lines: Sequence[Line], x_name: str, y_name: str) -> str:
    """An SVG of some lines over common axes, with a key; nothing without points.

    Args:
        lines: points that are not finite are left out.
        x_name: what stands along the bottom.
        y_name: what the numbers on the left are.
    """
    shown = [Line(line.name, thinned(_finite(line.points))) for line in lines]
    shown = [line for line in shown if line.points]
    if not shown:
        return ""
    xs = [x for line in shown for x, _ in line.points]
    ys = [y for line in shown for _, y in line.points]
    frame = _Frame(min(xs), max(xs), *_spread(min(ys), max(ys)))
    parts = [*frame.axes(x_name)]
    for number, line in enumerate(shown):
        parts.append(_drawn(line, frame, COLOURS[number % len(COLOURS)]))
    title = f"{y_name} by {x_name}"
    svg = (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
    return svg + _key([line.name for line in shown])


class _Frame(NamedTuple):
    """The values at the ends of both axes."""

    first: float
    last: float
    lowest: float
    highest: float

    def x(self, value: float) -> float:
        """Where a value lies along the bottom."""
        share = (value - self.first) / (self.last - self.first) if self.last > self.first else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """How far below the top."""
        share = (value - self.lowest) / (self.highest - self.lowest)
        return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)

    def axes(self, x_name: str) -> list[str]:
        """Rules with their numbers."""
        parts = []
        for number in range(TICKS):
            value = self.lowest + (self.highest - self.lowest) * number / (TICKS - 1)
            y = self.y(value)
            parts.append(
                f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" style="stroke:var(--rule)"/>'
                f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>'
            )
        for value, anchor in ((self.first, "start"), (self.last, "end")):
            if value == self.first or self.last > self.first:
                parts.append(f'<text x="{self.x(value):.1f}" y="{HEIGHT - 12}" text-anchor="{anchor}">{value:g}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        return [*parts, f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_name)}</text>']


def _drawn(line: Line, frame: _Frame, colour: str) -> str:
    """The line; a single point as a dot."""
    places = [(frame.x(x), frame.y(y)) for x, y in line.points]
    if len(places) == 1:
        ((x, y),) = places
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most `MOST_POINTS` points: the means of groups of neighbours."""
    size = math.ceil(len(points) / MOST_POINTS) or 1
    if size == 1:
        return list(points)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(group[-1][0], math.fsum(y for _, y in group) / len(group)) for group in groups]


def _finite(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def _spread(lowest: float, highest: float) -> tuple[float, float]:
    """Ends of an axis, never the same."""
    margin = 0.05 * (highest - lowest) or max(abs(highest) * 0.05, 1e-9)
    return lowest - margin, highest + margin


def _key(names: Sequence[str]) -> str:
    swatches = [
        f'<span class="key" style="background:{COLOURS[number % len(COLOURS)]}"></span>{escape(name)}'
        for number, name in enumerate(names)
    ]
    return f'<p class="note">{"".join(swatches)}</p>'
