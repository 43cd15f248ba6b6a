"""The census as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from turnmill.report.census import Unit
from turnmill.report.census_text import code_rows, count_rows, length_table, row_table, token_table
from turnmill.report.page import KIND_COLOURS, bar, legend, page, section, table


def census_page(census: Mapping[str, Any]) -> str:
    """One self-contained page: rows, codes, tokens by kind, lengths, what was done, trained text.

    Args:
        census: what `turnmill.report.census.census` gives.
    """
    return page("turnmill census", _sections(census))


def _sections(census: Mapping[str, Any]) -> Iterator[str]:
    unit: Unit = census.get("unit", "tokens")
    yield section("Rows", table(*row_table(census)), "Each row is counted in exactly one column after read.")
    codes = table(["source", "rows", "code", "what it means"], code_rows(census))
    yield section("Why rows left", codes or "<p>None did.</p>")
    tokens = table(*token_table(census, unit)) + _bars(census, unit)
    yield section(f"{unit.capitalize()} of the training examples", tokens, "By who wrote them.")
    note = f"So many percent of the examples have at most so many {unit}."
    yield section("Lengths", table(*length_table(census)) or "<p>No examples.</p>", note)
    yield section("What was done to rows", table(["source", "what"], count_rows(census)) or "<p>Nothing.</p>")
    yield section("What the model learns to write", "".join(_samples(census)), "Decoded from the trained stretches.")


def _bars(census: Mapping[str, Any], unit: Unit) -> str:
    found = {name: part[unit] for name, part in census["per_source"].items() if part[unit]["total"]}
    kinds = [kind for kind in KIND_COLOURS if any(kind in tokens for tokens in found.values())]
    bars = [
        f"<p>{escape(name)}</p>{bar({kind: tokens[kind] for kind in kinds if kind in tokens})}"
        for name, tokens in found.items()
    ]
    return "".join(bars) + (legend(kinds) if kinds else "")


def _samples(census: Mapping[str, Any]) -> Iterator[str]:
    for name, part in census["per_source"].items():
        for sample in part["samples"]:
            yield f"<p>{escape(name)}, row {sample['row']}</p>"
            yield from (f"<pre>{escape(text)}</pre>" for text in sample["trained"])
