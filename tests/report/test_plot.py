from __future__ import annotations

import math
import xml.etree.ElementTree as xml

import pytest

from turnmill.report.plot import MOST_POINTS, Line, line_plot, thinned


def svg_of(*lines: Line) -> xml.Element:
    return xml.fromstring(line_plot(lines, "step", "loss").partition("</svg>")[0] + "</svg>")


def test_a_line_goes_from_corner_to_corner_of_its_axes():
    svg = svg_of(Line("a", [(0, 1.0), (10, 3.0), (20, 2.0)]))
    (path,) = [one for one in svg.iter("path") if one.get("stroke-width")]
    assert path.get("d").count("L") == 2
    xs = [float(point.split()[0]) for point in path.get("d").lstrip("M").split("L")]
    assert xs == sorted(xs)
    assert [text.text for text in svg.iter("text")][-3:] == ["0", "20", "step"]


@pytest.mark.parametrize("points", [[(3, 2.0)], [(3, 2.0), (4, math.nan)], [(1, math.inf), (3, 0.0)]])
def test_a_single_point_is_a_dot_whatever_is_beside_it(points):
    svg = svg_of(Line("a", points))
    assert len(list(svg.iter("circle"))) == 1


def test_a_flat_line_has_an_axis():
    assert "nan" not in line_plot([Line("a", [(0, 2.0), (1, 2.0)])], "step", "loss")


@pytest.mark.parametrize("lines", [[], [Line("a", [])], [Line("a", [(1, math.nan)])]])
def test_nothing_to_show_is_nothing(lines):
    assert line_plot(lines, "step", "loss") == ""


def test_names_of_others_are_text():
    assert "<b>" not in line_plot([Line("<b>x", [(0, 1.0), (1, 2.0)])], "<b>", "<b>")


def test_a_long_line_keeps_its_means_and_its_end():
    points = [(step, float(step % 2)) for step in range(10 * MOST_POINTS)]
    found = thinned(points)
    assert len(found) == MOST_POINTS
    assert found[-1] == (points[-1][0], 0.5)
