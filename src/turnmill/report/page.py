"""One self-contained HTML page: its own style, light or dark as the reader's system, nothing from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

NAME_CHARACTERS = 40
"""A column of single words of at most so many characters is one of names."""
NUMBER = re.compile(r"[0-9][0-9,]*(\.[0-9]+)?( \([0-9]+ ?%\))?")
"""With its share behind it, where it has one."""
SENTENCE = ' class="sentence"'

STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #1b1f24; --faint: #667; --rule: #d8dce2; --panel: #f5f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #16181c; --ink: #e4e7eb; --faint: #99a1ad; --rule: #363b43; --panel: #1f2328; }
}
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
p.note { color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--rule); padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top; }
th { color: var(--faint); font-weight: 600; }
td.name { white-space: nowrap; } td.sentence { min-width: 12rem; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
pre { background: var(--panel); padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }
h3 { font-size: 1rem; }
code { background: var(--panel); padding: .1rem .3rem; overflow-wrap: anywhere; }
p.alarm { border-left: .25rem solid var(--ink); padding-left: .6rem; }
svg.plot { display: block; width: 100%; max-width: 48rem; margin: .5rem 0; }
svg.plot rect { fill: #4c8fd6; } svg.plot text { fill: currentColor; font-size: 13px; }
svg.plot line { stroke: currentColor; stroke-width: 1.5; }
.bar { display: flex; height: 1.1rem; background: var(--panel); margin: .3rem 0; max-width: 48rem; }
.bar span { display: block; height: 100%; }
.key { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; vertical-align: -.1rem; }
"""

KIND_COLOURS: dict[str, str] = {
    "frame": "#8a93a0",
    "scaffold": "#b3bac4",
    "system": "#9a7fd1",
    "user": "#4c8fd6",
    "tools": "#7a9e9f",
    "reasoning": "#d6a13c",
    "answer": "#3fa45b",
    "call": "#d4703c",
    "result": "#b0678f",
    "stop": "#c94f4f",
}
"""A colour of each kind that stands out on a light and on a dark ground."""


def page(title: str, body: Iterable[str]) -> str:
    """A whole page.

    Args:
        title: its heading, as plain text.
        body: pieces of HTML, escaped where they hold text of others.
    """
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    content = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>{head}<style>{STYLE}</style></head>\n'
        f"<body>\n<h1>{escape(title)}</h1>\n{content}\n</body>\n</html>\n"
    )


def section(title: str, content: str, note: str = "") -> str:
    """A heading with what stands below it."""
    told = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<h2>{escape(title)}</h2>{told}{content}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain text; columns of numbers are set to the right. Nothing without rows."""
    cells = [list(row) for row in rows]
    if not cells:
        return ""
    classes = [_class([row[column] for row in cells]) for column in range(len(headings))]
    head = "".join(f"<th{kind}>{escape(text)}</th>" for kind, text in zip(classes, headings, strict=True))
    lines = [
        "<tr>" + "".join(f"<td{kind}>{escape(text)}</td>" for kind, text in zip(classes, row, strict=True)) + "</tr>"
        for row in cells
    ]
    return f'<div class="wide"><table><tr>{head}</tr>\n' + "\n".join(lines) + "</table></div>"


def _class(column: Sequence[str]) -> str:
    """Numbers stand to the right, names and codes on one line, sentences wide enough to be read on a narrow screen."""
    if all(NUMBER.fullmatch(text) for text in column):
        return ' class="number"'
    longest = max(len(text) for text in column)
    return ' class="name"' if longest <= NAME_CHARACTERS and not any(" " in text for text in column) else SENTENCE


def bar(parts: Mapping[str, int], colours: Mapping[str, str] = KIND_COLOURS) -> str:
    """A bar of kinds, each as wide as its share."""
    total = sum(parts.values()) or 1
    spans = [
        f'<span style="width:{100 * count / total:.2f}%;background:{colours.get(kind, "#888")}" '
        f'title="{escape(kind)} {count:,}"></span>'
        for kind, count in parts.items()
    ]
    return f'<div class="bar">{"".join(spans)}</div>'


def legend(kinds: Iterable[str], colours: Mapping[str, str] = KIND_COLOURS) -> str:
    """The colours of kinds."""
    keys = [f'<span class="key" style="background:{colours.get(kind, "#888")}"></span>{escape(kind)}' for kind in kinds]
    return f'<p class="note">{"".join(keys)}</p>'
