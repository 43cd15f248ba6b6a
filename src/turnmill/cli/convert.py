"""Write checked rows in another dialect: openai, sharegpt, alpaca, anthropic, harmony, or raw texts as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.check import say_dialects
from turnmill.cli.output import next_step, notice, write, write_json, write_table
from turnmill.errors import Rejected

if TYPE_CHECKING:
    from turnmill.files.record import Record
    from turnmill.verbs.convert import SourceCounts

NAMED_ROWS = 20
"""So many rows that are not written are named one by one."""


@configured("sources", "read", "check", "health")
@click.option(
    "--to", "target", metavar="DIALECT", required=True, help="openai, sharegpt, alpaca, anthropic, harmony, text."
)
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="JSON lines; not there yet.")
@click.option("--dry-run", is_flag=True, help="Only count what would be written.")
def command(call: Invocation, target: str, output: Path | None, dry_run: bool) -> None:
    """Reads and checks every row and writes it as the other dialect says it; needs no model.

    A row is written only where reading it back gives the same turns, weights, tools and template arguments. Rows that
    the dialect has no form for are counted and named; over the health limit nothing is written, and the exit is 3.
    """
    from turnmill.dialects import writer_of
    from turnmill.errors import UsageError
    from turnmill.verbs.convert import convert_sources
    from turnmill.verbs.read import open_sources

    writer_of(target)
    if output is None and not dry_run:
        raise UsageError("no file to write: expected --output FILE", next_step=f"--output {target}.jsonl")
    opened = open_sources(call.config.model_copy(update={"sources": call.sources}))
    say_dialects(opened)
    faults = _Faults()
    found = convert_sources(opened, call.config, target, None if dry_run else output, faults.name)
    faults.say_hidden()
    _answer(call, found, target, output, dry_run)
    if output is not None and not dry_run:
        next_step(f"turnmill check {output} --dialect {target}")


class _Faults:
    """The rows that are not written: the first ones by name, the others by number."""

    def __init__(self) -> None:
        self._count = 0

    def name(self, record: Record, fault: Rejected) -> None:
        """Name one."""
        self._count += 1
        if self._count <= NAMED_ROWS:
            notice(f"{record.source_file}:{record.source_line}  row {record.row}  {fault}")

    def say_hidden(self) -> None:
        """Say how many more there are."""
        if self._count > NAMED_ROWS:
            notice(f"and {self._count - NAMED_ROWS:,} more")


def _answer(call: Invocation, found: list[SourceCounts], dialect: str, output: Path | None, dry_run: bool) -> None:
    for counted in found:
        if counted.warning:
            notice(counted.warning)
    if call.json:
        file = None if dry_run or output is None else str(output)
        write_json({"to": dialect, "output": file, "sources": [counted.as_json() for counted in found]})
        return
    for counted in found:
        _summarise(counted.as_json(), dry_run)


def _summarise(counted: dict[str, object], dry_run: bool) -> None:
    from turnmill.codes import CODES

    done = "can be written" if dry_run else "written"
    write(f"{counted['source']}: {counted['rows']:,} rows, {counted['written']:,} {done}")
    codes = counted["codes"]
    if isinstance(codes, dict) and codes:
        rows = [[f"{n:,}", code, CODES[code].remedy] for code, n in sorted(codes.items(), key=lambda one: -one[1])]
        write_table(["rows", "code", "what to do"], rows)
