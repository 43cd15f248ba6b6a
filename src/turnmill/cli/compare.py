"""Set two prepared data sets, a selection and its control, or two evaluations side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, write, write_json, write_table
from turnmill.errors import shell_word

if TYPE_CHECKING:
    from turnmill.evaluation.paired import Difference


@click.command()
@click.argument("first", metavar="OUT")
@click.argument("second", metavar="[OTHER]", required=False)
@click.option("--json", is_flag=True, help="The answer as JSON.")
def command(first: str, second: str | None, json: bool) -> None:
    """Compare the training rows of OUT with those of OTHER; without it, with OUT's random control.

    OUT#control and OUT#eval name other rows of a folder. Of two evaluations, their losses are set side by side, row by
    row. `turnmill diff` says which rows changed between two runs.
    """
    from turnmill.verbs import compare_evaluations
    from turnmill.verbs.compare import compare, pair

    if compare_evaluations.are_evaluations(first, second) and second is not None:
        _show_evaluations(first, second, as_json=json)
        return
    ours, theirs = pair(first, second)
    found = compare(ours, theirs)
    if json:
        write_json(found)
        return
    write_table(["", str(ours), str(theirs)], list(_rows(found["a"], found["b"])))
    write(f"{found['shared_rows']:,} rows are in both")
    next_step(f"turnmill census {shell_word(ours.folder)}")


def _show_evaluations(first: str, second: str, *, as_json: bool) -> None:
    """The losses of two models over the same rows."""
    from turnmill.verbs import compare_evaluations

    found = compare_evaluations.compare(first, second)
    if as_json:
        write_json(compare_evaluations.as_json(first, second, found))
        return
    for heading, differences in (("set", found.sets), ("kind", found.groups)):
        write_table([heading, *DIFFERENCE], [_difference(name, one) for name, one in differences.items()])
        write("")
    if found.total is not None:
        write_table(["", *DIFFERENCE], [_difference("all", found.total)])
    for count, what in ((found.only_first, f"only in {first}"), (found.only_second, f"only in {second}")):
        write(f"{count:,} rows are {what}")
    if found.other_tokens:
        write(f"{found.other_tokens:,} rows of both are of other tokens, and not compared")
    next_step(f"cat {shell_word(f'{second}/summary.json')}")


DIFFERENCE = ("rows", "a", "b", "b - a", "standard error", "better", "worse")


def _difference(name: str, one: Difference) -> list[str]:
    error = "" if one.standard_error is None else f"{one.standard_error:.4f}"
    values = [f"{one.first:.4f}", f"{one.second:.4f}", f"{one.difference:+.4f}", error]
    return [name, f"{one.rows:,}", *values, f"{one.better:,}", f"{one.worse:,}"]


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
