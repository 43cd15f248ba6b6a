from __future__ import annotations

import re

import numpy as np
import pytest

from turnmill.options import Select
from turnmill.report.census import census
from turnmill.report.census_page import census_page
from turnmill.report.selection import pool_facts
from turnmill.report.selection_page import selection_section
from turnmill.selection import Groups, Scored, select

HOSTILE = "<script>alert(1)</script>"


def report(*, is_scored: bool = True, names: tuple[str, ...] = ("chat", HOSTILE), **options) -> dict:
    """What a report says of a selection out of forty rows in two groups."""
    trained = np.full(40, 100)
    scored = Scored(trained, trained + 50, np.linspace(0.1, 4, 40) * trained, np.full(40, np.nan), trained, trained)
    options = Select(**{"strategy": "balanced", "rows": 12, "max_perplexity": 0, "min_perplexity": 0, **options})
    groups = Groups(names, np.arange(40) % len(names))
    facts = pool_facts(scored, select(scored, options, seed=0), groups, is_scored=is_scored)
    return {"strategy": options.strategy, "budget": {"rows": options.rows}, **facts}


def cells(page: str, first: str) -> list[str]:
    """The cells behind the first one of a row."""
    (row,) = re.findall(rf"<tr><td[^>]*>{re.escape(first)}</td>(.*?)</tr>", page)
    return re.findall(r"<td[^>]*>(.*?)</td>", row)


def rows_of(page: str, heading: str) -> str:
    """The table below a heading."""
    return re.search(rf"<h3>{heading}</h3>(.*?)</table>", page, re.DOTALL)[1]


def test_the_buckets_of_the_pool_the_choice_and_the_control_stand_side_by_side():
    found = report()
    (page,) = selection_section(found)
    assert "Strategy <strong>balanced</strong>, a budget of 12 rows." in page
    known = rows_of(page, "How well the scoring model knows the rows")
    assert cells(known, "selected") == ["4 (33%)"] * 3
    for side in ("pool", "control"):
        assert [int(cell.split()[0]) for cell in cells(known, side)] == list(found[side]["familiarity"].values())
    assert page.count('class="bar"') == 3
    assert 'style="width:33.33%;background:#3fa45b"' in page


def test_sizes_perplexities_groups_and_codes_are_those_of_the_report():
    found = report()
    (page,) = selection_section(found)
    assert cells(page.partition("<h3>")[0], "selected") == ["12", "1,800", "1,200"]
    assert (
        cells(rows_of(page, "Perplexity of the trained tokens"), "pool")[2]
        == f"{found['pool']['perplexity']['median']:.2f}"
    )
    groups = cells(rows_of(page, "Groups"), "chat")
    assert [int(cell.split()[0]) for cell in groups] == [
        found[s]["groups"]["chat"]["rows"] for s in ("pool", "selected", "control")
    ]
    assert cells(rows_of(page, "Rows of the pool that were not chosen"), "not-selected") == ["28"]
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize(
    ("options", "without"),
    [({"is_scored": False, "strategy": "random"}, "scoring model knows"), ({"strategy": "random"}, "control</td>"),
     ({"names": ("all",)}, "<h3>Groups")],
)  # fmt: skip
def test_what_there_is_not_is_not_shown(options, without):
    (page,) = selection_section(report(**options))
    assert without not in page
    assert "Strategy" in page


def test_a_report_without_a_selection_has_no_section():
    assert list(selection_section(None)) == []
    assert "<h2>Selection" not in census_page(census([]))
    assert "<h2>Selection" in census_page(census([]) | {"selection": report()})
