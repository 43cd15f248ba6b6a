"""Where a verb's words go: the answer to stdout, everything else to stderr."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from turnmill.errors import redacted

if TYPE_CHECKING:
    from rich.console import Console


TYPED_AGAIN = ("code", "becomes")
"""Headings of columns whose words are options of other verbs."""
UNWRAPPED_WIDTH = 10_000
"""Columns of a table that is read by a program: a row stays on its line."""


def write(text: str) -> None:
    """A line of the answer."""
    click.echo(text)


def write_json(value: Any) -> None:
    """A JSON value of the answer, on one line."""
    click.echo(json.dumps(value, ensure_ascii=False))


def notice(text: str) -> None:
    """A line that is not part of the answer, without credentials of URLs."""
    click.echo(redacted(text), err=True)


def next_step(command: str) -> None:
    """The command to type next: the last line that a verb writes to stderr."""
    click.echo(redacted(command), err=True)


def console(*, stderr: bool = False) -> Console:
    """A rich console for tables and colours: plain when its stream is no terminal."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def write_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows in aligned columns; only a terminal wraps them. Codes and names are to be typed again: they stay whole."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, no_wrap=heading == headings[0] or heading in TYPED_AGAIN, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    out = console()
    if out.is_terminal:
        out.print(table)
        return
    out.width = UNWRAPPED_WIDTH
    with out.capture() as captured:
        out.print(table)
    write("\n".join(line.rstrip() for line in captured.get().splitlines()))


@contextmanager
def progress(description: str, total: int | None = None, unit: str = "rows") -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, off when that is no terminal; gives the function that advances it.

    Args:
        description: what is being done.
        total: how many there are, None where nobody knows.
        unit: what is counted.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    speed = TextColumn("{task.fields[speed]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), speed, TimeRemainingColumn())
    out = console(stderr=True)
    # rich would send what is written to stdout meanwhile to the bar's own stream
    with Progress(*columns, console=out, disable=not out.is_terminal, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(description, total=total, speed="")

        def advance(count: int) -> None:
            bar.advance(task, count)
            speed_now = bar.tasks[0].speed
            bar.update(task, speed=f"{speed_now:,.0f} {unit}/s" if speed_now else "")

        yield advance
