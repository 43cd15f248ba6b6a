"""The census for a terminal: a few tables that a person reads from top to bottom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from turnmill.codes import CODES
from turnmill.errors import MAX_QUOTED_CHARACTERS, quote
from turnmill.report.census import PERCENTILES, Unit

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

ALWAYS_SHOWN = ("read", "accepted")
"""Row counts that are shown where they are 0, too."""
MAX_STRETCHES = 2
"""Trained stretches that are shown of a sampled row; the page shows all."""
CUT_COLUMNS = ("what it means", "trained text")

Rows = Iterable[Sequence[str]]


def census_lines(census: Mapping[str, Any]) -> list[RenderableType]:
    """The census as rich renderables: rows, codes, tokens by kind, lengths, what was done, trained text.

    Args:
        census: what `turnmill.report.census.census` gives.
    """
    unit: Unit = census.get("unit", "tokens")
    noun = unit.capitalize()
    parts: list[tuple[str, list[str], Rows]] = [
        ("Rows: each is counted in exactly one column after `read`", *row_table(census)),
        ("Why rows left", ["source", "rows", "code", "what it means"], code_rows(census)),
        (f"{noun} of the training examples, by who wrote them", *token_table(census, unit)),
        (f"Lengths: so many percent of the examples have at most so many {unit}", *length_table(census)),
        ("History: trained turns whose context is what inference would prompt", *history_table(census)),
        ("What was done to rows, and how often", ["source", "what"], count_rows(census)),
        ("What the model learns to write (samples)", ["row", "trained text"], sample_rows(census)),
    ]
    return [part for title, headings, rows in parts for part in _titled(title, headings, list(rows))]


def row_table(census: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Headings and rows of the row counts; a class that nothing is in is left out."""
    shown = [row for row, count in census["rows"].items() if count or row in ALWAYS_SHOWN]
    rows = [[name, *(f"{part['rows'][row]:,}" for row in shown)] for name, part in _sources(census)]
    return ["source", *shown], rows


def code_rows(census: Mapping[str, Any]) -> Iterator[list[str]]:
    """Source, rows, code and meaning of each code that a row left with."""
    for name, part in census["per_source"].items():
        for code, count in part["codes"].items():
            yield [name, f"{count:,}", code, CODES[code].means if code in CODES else ""]


def token_table(census: Mapping[str, Any], unit: Unit) -> tuple[list[str], Rows]:
    """Headings and rows of tokens by kind, apart what trains and what does not."""
    rows = [
        [
            name,
            f"{part[unit]['total']:,}",
            f"{part[f'trained_{unit}']['total']:,} ({part['trained_share']:.0%})",
            _kinds(part[f"trained_{unit}"]),
            _kinds(untrained(part, unit)),
        ]
        for name, part in _sources(census)
    ]
    return ["source", "all", "trained", "trained: by kind", "not trained: by kind"], rows


def untrained(part: Mapping[str, Any], unit: Unit) -> dict[str, int]:
    """Kind → tokens that do not train."""
    trained = part[f"trained_{unit}"]
    return {kind: n - trained.get(kind, 0) for kind, n in part[unit].items() if n > trained.get(kind, 0)}


def length_table(census: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Headings and rows of the length percentiles."""
    keys = [*map(str, PERCENTILES), "max"]
    rows = [
        [name, f"{part['examples']:,}", *(f"{part['lengths'][key]:,}" for key in keys)]
        for name, part in _sources(census)
        if part["lengths"]
    ]
    return ["source", "examples", *(f"{key} %" for key in keys[:-1]), "max"], rows


def history_table(census: Mapping[str, Any]) -> tuple[list[str], Rows]:
    """Headings and rows of the parity of trained turns, with what to type where it is not whole."""
    rows = [
        [
            name,
            f"{found['turns']:,}",
            f"{found['parity']:.2%}",
            f"{found['without_reasoning']:,}",
            "" if found["parity"] == 1 and not found["without_reasoning"] else "--render.history auto",
        ]
        for name, part in _sources(census)
        if (found := part.get("history"))
    ]
    return ["source", "trained turns", "parity", "lost their reasoning", "try"], rows


def count_rows(census: Mapping[str, Any]) -> Iterator[list[str]]:
    """Source, and everything that was counted of its rows."""
    for name, part in census["per_source"].items():
        counts = {**{f"repair/{repair}": count for repair, count in part["repairs"].items()}, **part["counts"]}
        if counts:
            yield [name, ", ".join(f"{what} {count:,}" for what, count in counts.items())]


def sample_rows(census: Mapping[str, Any]) -> Iterator[list[str]]:
    """Source and row, and the beginnings of its trained text, one row a source."""
    for name, part in census["per_source"].items():
        for sample in part["samples"][:1]:
            stretches = sample["trained"]
            shown = [quote(text, MAX_QUOTED_CHARACTERS) for text in stretches[:MAX_STRETCHES]]
            more = len(stretches) - len(shown)
            yield [f"{name} {sample['row']}", "\n".join([*shown, f"… and {more} more"] if more > 0 else shown)]


def _sources(census: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every source, and their sum where there are several."""
    yield from census["per_source"].items()
    if len(census["per_source"]) > 1:
        yield "all", census


def _kinds(tokens: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in tokens.items() if kind != "total") or "none"


def _titled(title: str, headings: Sequence[str], rows: list[Sequence[str]]) -> list[RenderableType]:
    """A heading and its table; nothing where the table is empty."""
    if not rows:
        return []
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    for number, heading in enumerate(headings):
        is_number = all(row[number].replace(",", "").isdigit() for row in rows)
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number or number == 0)
    for row in rows:
        table.add_row(*(_cell(Text(cell), heading) for cell, heading in zip(row, headings, strict=True)))
    return [Text(title, style="bold"), table, Text()]


def _cell(text: Text, heading: str) -> Text:
    """The text of a cell; what is only a hint is cut at the edge of the terminal, everything else is folded."""
    if heading in CUT_COLUMNS:
        text.no_wrap, text.overflow = True, "ellipsis"
    return text
