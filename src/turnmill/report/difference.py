"""What differs between two prepared folders, as tables for the terminal and as one HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from turnmill.report.page import page, section, table

MEANS = {
    "same": "nothing of them changed",
    "removed": "in A alone",
    "added": "in B alone",
    "text": "another text under the same id of their source",
    "tokens": "the same conversation as other tokens: template, tokenizer or cut",
    "labels": "the same tokens, other labels or weights",
    "moved": "the same conversation on another side",
}
VALUE_CHARACTERS = 60
"""Shown of an option's value."""


class Part(NamedTuple):
    """One table of the report."""

    title: str
    headings: Sequence[str]
    rows: list[list[str]]
    note: str = ""


def parts(found: Mapping[str, Any]) -> Iterator[Part]:
    """The tables that have rows.

    Args:
        found: what `turnmill.verbs.diff.diff` gives.
    """
    rows = found["rows"]
    yield Part("Rows", ["rows", "", "what"], [[name, f"{rows[name]:,}", MEANS[name]] for name in MEANS])
    more = (
        _fates(found),
        Part("Codes that rose or fell", ["code", "A", "B", "change"], list(_codes(found["codes"]))),
        Part("Sizes", ["", "A", "B", "change"], list(_sizes(found["a"], found["b"]))),
        _sources(found["sources"]),
        Part("Options that differ", ["option", "A", "B"], _values(found["options"])),
        Part("Data that differ", ["file", "A", "B"], _values(found["data"]), "Beginnings of hashes."),
        Part("Made by", ["what", "A", "B"], _values(found["versions"])),
        Part("Some of the rows", ["change", "where", "id", "A", "B"], list(_rows(found["shown"]))),
    )
    yield from (part for part in more if part.rows)


def _fates(found: Mapping[str, Any]) -> Part:
    """Where rows went, and where they came from."""
    rows = [["moved from " + name, f"{count:,}"] for name, count in found["moved"].items()]
    for key, left, unread in (
        ("removed_with", "removed: B let them go with {}", "removed: not among the data of B"),
        ("added_had", "added: A had let them go with {}", "added: not among the data of A"),
    ):
        rows += [[left.format(code), f"{count:,}"] for code, count in found[key]["codes"].items()]
        if found[key]["not_read"]:
            rows.append([unread, f"{found[key]['not_read']:,}"])
    return Part("Where they went and came from", ["what", "rows"], rows, "By file and line.")


def _codes(codes: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
    for code, (before, after) in codes.items():
        if before != after:
            yield [code, f"{before:,}", f"{after:,}", f"{after - before:+,}"]


def _sizes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[list[str]]:
    for side in ("train", "eval"):
        for name in ("rows", "tokens", "trained_tokens"):
            before, after = a[side][name], b[side][name]
            if before or after:
                yield [f"{side} {name.replace('_', ' ')}", f"{before:,}", f"{after:,}", f"{after - before:+,}"]
        before, after = a[side]["trained_share"], b[side]["trained_share"]
        if before or after:
            yield [f"{side} trained share", f"{before:.1%}", f"{after:.1%}", f"{100 * (after - before):+.1f} points"]


def _sources(sources: Mapping[str, Any]) -> Part:
    names = ("removed", "added", "text", "tokens", "labels", "moved")
    rows = [
        [
            source, f"{one['a']['rows']:,}", f"{one['b']['rows']:,}",
            f"{one['a']['share']:.1%}", f"{one['b']['share']:.1%}", *(f"{one[name]:,}" for name in names),
        ]
        for source, one in sources.items()
    ]  # fmt: skip
    headings = ["source", "rows A", "rows B", "share A", "share B", *names]
    return Part(
        "Sources",
        headings,
        rows,
        "Training rows, shares of the trained tokens, and what became of the rows of both sides.",
    )


def _values(changed: Mapping[str, Sequence[Any]]) -> list[list[str]]:
    return [[path, _value(before), _value(after)] for path, (before, after) in changed.items()]


def _value(value: Any) -> str:
    if value is None:
        return "–"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 1] + "…"


def _rows(shown: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[list[str]]:
    for name, rows in shown.items():
        for row in rows:
            where = f"{row['source']}: {row['source_file']}:{row['source_line']}"
            yield [name, where, row["id"][:12], *(_side(row, side) for side in "ab")]


def _side(row: Mapping[str, Any], side: str) -> str:
    if side not in row:
        return ""
    told = f"{row[side]['side']}, {row[side]['trained_tokens']:,} of {row[side]['tokens']:,} tokens train"
    difference = row.get("difference")
    return f"{told}; {difference[side]}" if difference and difference[side] is not None else told


def difference_page(found: Mapping[str, Any]) -> str:
    """One self-contained page.

    Args:
        found: what `turnmill.verbs.diff.diff` gives.
    """
    return page("turnmill diff", _sections(found))


def _sections(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"<p>A is <code>{escape(found['a']['name'])}</code>, B is <code>{escape(found['b']['name'])}</code>.</p>"
    for part in parts(found):
        yield section(part.title, table(part.headings, part.rows), part.note)
