"""The census as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from turnmill.report.census import Unit
from turnmill.report.census_text import code_rows, count_rows, history_table, length_table, row_table, token_table
from turnmill.report.lengths import WHOLE_SHARE, histogram
from turnmill.report.page import KIND_COLOURS, bar, legend, page, section, table
from turnmill.report.selection_page import selection_section

TOO_LONG = ("too-long", "first-turn-too-long", "far-too-long")
"""Codes of rows that no example was made of for their length."""
HISTORY_NOTE = (
    "Parity: the share of trained turns whose context is, token by token, what inference would have prompted."
)


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
    yield section("Why rows left", (codes or "<p>None did.</p>") + _left(census))
    yield from selection_section(census.get("selection"))
    tokens = table(*token_table(census, unit)) + _bars(census, unit)
    yield section(f"{unit.capitalize()} of the training examples", tokens, "By who wrote them.")
    note = f"So many percent of the examples have at most so many {unit}."
    yield section("Lengths", _lengths(census, unit) or "<p>No examples.</p>", note)
    if census.get("turn_bins"):
        yield section("Turns", histogram(census["turn_bins"], None, "trained turns"), "Trained turns of each example.")
    parity = table(*history_table(census))
    yield section("History", parity or "<p>Not compared.</p>", HISTORY_NOTE)
    yield section("What the template cannot say", _unsaid(census), "Learned from small conversations before the run.")
    alarms = [alarm for part in census["per_source"].values() for alarm in part.get("repair_alarms", [])]
    if alarms:
        yield section("Alarms", "".join(f'<p class="alarm">⚠ {escape(alarm)}</p>' for alarm in alarms))
    yield section("What was done to rows", table(["source", "what"], count_rows(census)) or "<p>Nothing.</p>")
    yield section("What the model learns to write", "".join(_samples(census)), "Decoded from the trained stretches.")


def _lengths(census: Mapping[str, Any], unit: Unit) -> str:
    """The histogram, the percentiles, and a limit to think about."""
    facts = census.get("length_bins")
    if not facts:
        return ""
    told = (
        f"<p>A limit of <strong>{facts['suggested']:,}</strong> {unit} would keep {WHOLE_SHARE} % or more of these "
        f"examples whole; {facts['longer']:,} are longer. To use it: "
        f"<code>--max-tokens {facts['suggested']}</code></p>"
        if unit == "tokens"
        else ""
    )
    told += _over_limit(census) if unit == "tokens" else ""
    return histogram(facts["bins"], census.get("max_tokens"), unit) + told + table(*length_table(census))


def _over_limit(census: Mapping[str, Any]) -> str:
    """What the lengths do not show: they are those of examples as they were cut to the limit."""
    counts = [part.get("counts", {}) for part in census["per_source"].values()]
    shortened = sum(found.get("fit/cut", 0) + found.get("fit/parts-added", 0) for found in counts)
    left = sum(census.get("codes", {}).get(code, 0) for code in TOO_LONG)
    if not shortened + left:
        return "<p>No row was cut or left for its length: the lengths are those of whole rows.</p>"
    return (
        f"<p>The lengths are those of examples as they were cut: {shortened:,} cuts were made, and {left:,} rows left "
        "as too long. Only a limit above the one of this run would keep more of them.</p>"
    )


def _unsaid(census: Mapping[str, Any]) -> str:
    says = census.get("template_says")
    if says is None:
        return "<p>Not looked at.</p>"
    rows = [[name, why] for name, why in says.items() if why is not True]
    return table(["what", "why"], rows) or "<p>It says all of them.</p>"


def _left(census: Mapping[str, Any]) -> str:
    """A few rows of each code, and the command that shows all."""
    rows = [
        [found["code"], f"{found['source']}: {found['place']}", found["quoted"]]
        for found in census.get("left_rows", [])
    ]
    if not rows:
        return ""
    more = census.get("show_left", "")
    said = f"<p>All of them: <code>{escape(more)}</code></p>" if more else ""
    return "<h3>Some of these rows</h3>" + table(["code", "where", "row"], rows) + said


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
