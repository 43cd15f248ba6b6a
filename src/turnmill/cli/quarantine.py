"""Show the rows that left a prepared folder, or take them out to be mended."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, write, write_json, write_table
from turnmill.errors import shell_word

if TYPE_CHECKING:
    from turnmill.verbs.quarantine import Wanted

SHOWN_ROWS = 20


@click.group()
def command() -> None:
    """Show the rows that left a prepared folder, or take them out to be mended."""


def choosing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options that choose rows."""
    options = (
        click.argument("folder", metavar="OUT", type=click.Path(path_type=Path)),
        click.option("--code", metavar="CODE", help="Only rows that left with this code."),
        click.option("--source", metavar="NAME", help="Only rows of this source."),
        click.option("--stage", metavar="VERB", help="Only rows that left at this verb."),
        click.option("--duplicates", is_flag=True, help="The rows that left as duplicates, in place of the others."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command()
@choosing
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help=f"Print so many rows [{SHOWN_ROWS}; JSON: all].")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON, one object a row.")
def show(folder: Path, limit: int | None, as_json: bool, **chosen: Any) -> None:
    """What left OUT, by class and code, what that means and what to do; then the rows."""
    from turnmill.verbs import quarantine

    wanted = quarantine.Wanted(**chosen)
    counts = quarantine.summary(folder, wanted)
    rows = quarantine.left_rows(folder, wanted)
    if as_json:
        for left in islice(rows, limit):
            write_json(quarantine.as_json(left))
    elif not counts:
        write("nothing left here")
    else:
        _write_summary(counts)
        for left in islice(rows, limit or SHOWN_ROWS):
            rejected = f"{left.code}: {left.message}" + ("" if left.at is None else f" (message {left.at})")
            write(f"{left.source}: {left.source_file}:{left.source_line}  row {left.row}  {rejected}")
        hidden = sum(counts.values()) - (limit or SHOWN_ROWS)
        if hidden > 0:
            write(f"and {hidden:,} more (--limit)")
    next_step(f"turnmill quarantine export {shell_word(folder)} --to mend.jsonl{_flags(wanted)}")


def _write_summary(counts: dict[tuple[str, str, str], int]) -> None:
    from turnmill.codes import CODES

    rows = []
    for (class_, code, source), count in sorted(counts.items(), key=lambda item: -item[1]):
        known = CODES.get(code)
        rows.append([f"{count:,}", class_, code, source, known.means if known else "", known.remedy if known else ""])
    write_table(["rows", "class", "code", "source", "what it means", "what to do"], rows)


def _flags(wanted: Wanted) -> str:
    named = {"code": wanted.code, "source": wanted.source, "stage": wanted.stage}
    flags = "".join(f" --{name} {value}" for name, value in named.items() if value is not None)
    return flags + (" --duplicates" if wanted.duplicates else "")


@click.command()
@choosing
@click.option("--to", "target", required=True, type=click.Path(path_type=Path), help="A file that is not there yet.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def export(folder: Path, target: Path, as_json: bool, **chosen: Any) -> None:
    """Write the rows as they were read, a line each, to be mended and read as a further source."""
    from turnmill.verbs import quarantine

    count = quarantine.export(folder, quarantine.Wanted(**chosen), target)
    write_json({"rows": count, "to": str(target)}) if as_json else write(f"{target}: {count:,} rows")
    next_step(f"turnmill check {shell_word(target)}")


command.add_command(show)
command.add_command(export)
