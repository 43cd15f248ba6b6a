"""Explanations as one self-contained HTML page, written row by row."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.report.colours import COLOURS, MEANINGS, showable
from turnmill.report.explanation import ExplainedSpan, Explanation

if TYPE_CHECKING:
    import jinja2

TEMPLATE = "page.html.jinja"


class Piece(NamedTuple):
    """A stretch of one span, all or none of it control-token text written by content."""

    text: str
    span: ExplainedSpan
    weight: float
    is_control: bool


def page(explanations: Iterable[Explanation], title: str) -> Iterator[str]:
    """The page in pieces; what stands in it came from data and is escaped.

    Args:
        explanations: the rows, taken one by one.
        title: of the page.
    """
    rows = (_row(explanation) for explanation in explanations)
    yield from (
        _environment().get_template(TEMPLATE).generate(title=title, rows=rows, colours=COLOURS, meanings=MEANINGS)
    )


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters["showable"] = showable
    return environment


def _row(explanation: Explanation) -> dict[str, Any]:
    names = ("row", "id", "place", "text", "turns", "examples", "roles", "code", "message", "at", "repairs")
    return {name: getattr(explanation, name) for name in names} | {"pieces": list(pieces(explanation))}


def pieces(explanation: Explanation) -> Iterator[Piece]:
    """The spans, cut where control-token text begins and ends."""
    edges = sorted({edge for hit in explanation.control_hits for edge in hit})
    weights = explanation.weights or (0.0,) * len(explanation.spans)
    for span, weight in zip(explanation.spans, weights, strict=True):
        inside = edges[bisect_right(edges, span.start) : bisect_right(edges, span.end - 1)]
        for start, end in zip([span.start, *inside], [*inside, span.end], strict=True):
            is_control = any(first <= start < last for first, last in explanation.control_hits)
            yield Piece((explanation.text or "")[start:end], span, weight, is_control)
