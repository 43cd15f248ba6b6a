"""Show the rows that left a prepared folder, or take them out to be mended."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.arguments import OVERRIDES, ConfiguredCommand
from turnmill.cli.output import next_step, write, write_json, write_table
from turnmill.errors import shell_word

if TYPE_CHECKING:
    from turnmill.verbs.quarantine import Wanted
    from turnmill.verbs.replay import Summary

SHOWN_ROWS = 20
STILL_ASKED = ("check.", "loss.")
"""Options that replayed rows are asked for again when they are read: they say what is admitted, and mend nothing."""


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


@click.command(cls=ConfiguredCommand, options_metavar="[OPTIONS] [--section.field VALUE]...")
@click.argument("folder", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--code", metavar="CODE", help="Only rows that left with this code.")
@click.option("--source", metavar="NAME", help="Only rows of this source.")
@click.option("--repairs", metavar="NAMES", help="Repairs of every source, with commas between, in place of its own.")
@click.option("--output", "-o", "target", type=click.Path(path_type=Path), help="Default: replayed.jsonl beside OUT.")
@click.option("--dry-run", is_flag=True, help="Say what would pass; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def replay(folder: Path, repairs: str | None, target: Path | None, dry_run: bool, as_json: bool, **chosen: Any) -> None:
    """Check the rejected rows again, with other options than OUT was made with; OUT stays as it is.

    Says of each code how many rows pass now, and writes those as a further source, as they were mended.
    """
    from turnmill.verbs import quarantine
    from turnmill.verbs import replay as replaying

    named = [name.strip() for name in repairs.split(",")] if repairs is not None else None
    overrides = click.get_current_context().meta[OVERRIDES]
    config = replaying.config_of(folder, overrides, named)
    target = target or folder.with_name("replayed.jsonl")
    found = replaying.replay(folder, quarantine.Wanted(**chosen), config, None if dry_run else target)
    output = target if found.passing and not dry_run else None
    if as_json:
        write_json(found.as_json(output))
    else:
        _write_replay(found, output)
    policies = "".join(f" --{path} {shell_word(value)}" for path, value in overrides if path.startswith(STILL_ASKED))
    next_step(f"turnmill check {shell_word(output)}{policies}" if output else _otherwise(folder, found))


replay.sections = ("sources", "read", "check", "loss")


def _write_replay(found: Summary, output: Path | None) -> None:
    rows = [[f"{count:,}", *key] for key, count in sorted(found.counts.items(), key=lambda item: (-item[1], item[0]))]
    if rows:
        write_table(["rows", "code", "becomes", "source"], rows)
    write(f"{found.passing:,} of {found.counts.total():,} rows pass now" + (f": {output}" if output else ""))
    if found.later:
        write(f"{found.later:,} left after check and were not replayed: give `prepare` other options")


def _otherwise(folder: Path, found: Summary) -> str:
    """What to type where nothing passes: what helps is said of each code there."""
    return f"turnmill quarantine show {shell_word(folder)}" if found.later else "turnmill list repairs"


command.add_command(show)
command.add_command(export)
command.add_command(replay)
