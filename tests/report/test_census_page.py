import re
from io import StringIO

import pytest

from turnmill.report.census import SourceCensus, census
from turnmill.report.census_page import census_page
from turnmill.report.census_text import census_lines

HOSTILE = '<script>alert("[bold]")</script>'
COUNTERS = {
    "rows/read": 2, "rows/accepted": 1, "rows/rejected": 1, "codes/blank-text": 1, "train/examples": 1,
    "train/tokens/user": 1200, "train/tokens/answer": 800, "train/trained/answer": 799, "read/ids-synthesised": 4,
}  # fmt: skip
FOUND = census(
    [SourceCensus(HOSTILE, COUNTERS, [2000], [{"source": HOSTILE, "row": 7, "id": "x", "trained": [HOSTILE] * 4}])]
)
EMPTY = census([SourceCensus("none", {}, [])])


def printed(found) -> str:
    from rich.console import Console

    console = Console(width=200, file=StringIO())
    for line in census_lines(found):
        console.print(line)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "said",
    ["blank-text", "799 (40%)", "answer 799", "user 1,200, answer 1", "2,000", "ids-synthesised", HOSTILE],
)
def test_the_terminal_says_it(said):
    assert said in printed(FOUND)


def test_samples_are_cut_in_the_terminal_and_whole_on_the_page():
    assert "… and 2 more" in printed(FOUND)
    assert census_page(FOUND).count("<pre>") == 4


def test_the_page_escapes_what_it_shows_and_loads_nothing():
    page = census_page(FOUND)
    assert "&lt;script&gt;alert(" in page
    assert not re.search(r"<script|https?:|src=|@import|url\(", page)
    assert "prefers-color-scheme: dark" in page
    assert 'class="number">2,000<' in page


def test_an_empty_census_is_shown():
    assert "Rows" in printed(EMPTY)
    assert "No examples." in census_page(EMPTY)


@pytest.mark.parametrize(
    ("counters", "said"),
    [
        ({}, "No row was cut or left for its length"),
        ({"fit/cut": 3}, "3 cuts were made, and 0 rows left"),
        ({"codes/too-long": 1}, "0 cuts were made, and 1 rows left"),
    ],
)
def test_lengths_say_whether_they_are_those_of_whole_rows(counters, said):
    assert said in census_page(census([SourceCensus("a", COUNTERS | counters, [2000])]))
