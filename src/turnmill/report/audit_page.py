"""An audit as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from turnmill.report.audit import measure_rows
from turnmill.report.page import page, section, table

SHOWN = 12
"""Answers of each end that are shown."""
TEXT_CHARACTERS = 400
HEADINGS = ("", "model", "baseline", "difference")
NOTE = (
    "Match and F1 leave reasoning out. Normalised: NFC, case folded, without punctuation and English articles. ± is "
    "one standard error; the turns of a conversation count together."
)


def audit_page(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """One self-contained page: measures, sources, and the answers that lie farthest and nearest.

    Args:
        summary: what `turnmill.report.audit.summary_of` gives.
        rows: a turn each, as `answers.jsonl` holds them.
    """
    return page("turnmill audit", _sections(summary, rows))


def _sections(summary: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    data = summary["data"]
    against = f", beside {escape(str(summary['baseline']['model']))}" if summary["baseline"] else ""
    yield (
        f"<p><code>{escape(str(summary['model']['model']))}</code>{against}, asked {summary['turns']:,} turns of "
        f"{summary['rows']:,} rows of {escape(data['side'])} in <code>{escape(data['name'])}</code>.</p>"
    )
    yield section("What it was found to know", table(HEADINGS, measure_rows(summary["measures"])), NOTE)
    if len(summary["sources"]) > 1:
        yield section("By source", "".join(_by_source(summary["sources"])))
    silent = list(_silent(summary))
    if silent:
        yield section("What is not known", table(["of", "turns", "why"], silent))
    known = [row for row in rows if row["f1"] is not None]
    nearest = sorted(known, key=lambda row: (row["f1"], row["row_id"], row["turn"]))
    yield section("Farthest from the recorded answer", _answers(nearest[:SHOWN]))
    yield section("Nearest to it", _answers(nearest[SHOWN:][::-1][:SHOWN]) or "<p>All are shown above.</p>")


def _by_source(sources: Mapping[str, Any]) -> Iterator[str]:
    for name, one in sources.items():
        yield f"<h3>{escape(name)}: {one['turns']:,} turns of {one['rows']:,} rows</h3>"
        yield table(HEADINGS, measure_rows(one["measures"]))


def _silent(summary: Mapping[str, Any]) -> Iterator[list[str]]:
    for side in ("model", "baseline"):
        found = summary.get(f"of_{side}", {})
        for what in ("unanswered", "nll_unknown"):
            named = "answers" if what == "unanswered" else "nats of the recorded answers"
            yield from ([f"{side}: {named}", f"{count:,}", why] for why, count in found.get(what, {}).items())


def _answers(rows: Sequence[Mapping[str, Any]]) -> str:
    told = [
        [
            f"{row['f1']:.2f}",
            f"{row['source']}:{row['source_line']}",
            *(_cut(row[k]) for k in ("asked", "recorded", "answer")),
        ]
        for row in rows
    ]
    return table(["F1", "row", "asked", "recorded", "answered"], told)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else text[: TEXT_CHARACTERS - 1] + "…"
