"""Set two prepared data sets, or a selection and its random control, side by side."""

from __future__ import annotations

from typing import Any

import click

from turnmill.cli.output import next_step, write, write_json, write_table
from turnmill.errors import shell_word


@click.command()
@click.argument("first", metavar="OUT")
@click.argument("second", metavar="[OTHER]", required=False)
@click.option("--json", is_flag=True, help="The answer as JSON.")
def command(first: str, second: str | None, json: bool) -> None:
    """Compare the training rows of OUT with those of OTHER; without it, with OUT's random control.

    OUT#control and OUT#eval name other rows of a folder. `turnmill diff` says which rows changed between two runs.
    """
    from turnmill.verbs.compare import compare, pair

    ours, theirs = pair(first, second)
    found = compare(ours, theirs)
    if json:
        write_json(found)
        return
    write_table(["", str(ours), str(theirs)], list(_rows(found["a"], found["b"])))
    write(f"{found['shared_rows']:,} rows are in both")
    next_step(f"turnmill census {shell_word(ours.folder)}")


def _rows(a: Any, b: Any) -> list[list[str]]:
    rows = [[name.replace("_", " "), f"{a[name]:,}", f"{b[name]:,}"] for name in COUNTS]
    for section, unit in (("sources", "rows"), ("trained_by_kind", "trained_tokens")):
        for name in dict.fromkeys([*a[section], *b[section]]):
            label = f"{section.replace('_', ' ')}: {name}"
            rows.append([label, *(_share(side[section].get(name, 0), side[unit]) for side in (a, b))])
    for section, form in (("lengths", "{:,}"), ("perplexity", "{:.4g}")):
        for name in dict.fromkeys([*a[section], *b[section]]):
            label = f"tokens, {name} %" if section == "lengths" and name != "max" else f"{section}, {name}"
            rows.append([label, *(_cell(side[section].get(name), form) for side in (a, b))])
    return rows


COUNTS = ("rows", "examples", "tokens", "trained_tokens")


def _share(count: int, whole: int) -> str:
    return f"{count:,} ({count / whole:.1%})" if whole else "0"


def _cell(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
