"""Name the rows that say what evaluation data say."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.check import say_dialects
from turnmill.cli.output import next_step, notice, progress, write, write_json, write_table

if TYPE_CHECKING:
    from turnmill.verbs.overlaps import FoundRow, Overlaps


@configured("sources", "read", "check", "filter", "decontaminate")
def command(call: Invocation) -> None:
    """Compares every sound row with evaluation data; needs no model and writes nothing.

    Prints each row that `prepare` would let go with the same `--against`: what it shares, and with which item. Rows
    that are rejected or filtered are not compared.
    """
    from turnmill.verbs.overlaps import Overlaps, overlaps
    from turnmill.verbs.read import open_sources

    opened = open_sources(call.config.model_copy(update={"sources": call.sources}))
    say_dialects(opened)
    found, listed = Overlaps(), []
    total = sum(shard.rows for source in opened for shard in source.plan.shards)
    with progress("decontaminate", total) as advance:
        for row in overlaps(opened, call.config, found, advance):
            if call.json:
                listed.append(row.as_json())
            else:
                _say(row)
    for warning in found.warnings:
        notice(f"warning: {warning}")
    _answer(call, found, listed)
    against = shlex.join(["--against", ",".join(call.config.decontaminate.against)])
    next_step(f"turnmill prepare {call.data} --model smollm2 {against} --output out")


def _say(row: FoundRow) -> None:
    record = row.row.record
    write(f"{record.source_file}:{record.source_line}  row {record.row}  {row.code}: {row.message}")


def _answer(call: Invocation, found: Overlaps, listed: list[dict[str, Any]]) -> None:
    if call.json:
        write_json({"per_source": found.per_source(), "per_file": found.per_file(), "found": listed})
        return
    headings = ["source", "read", "compared", "contaminated", "words", "contaminated words"]
    write_table(headings, [[name, *(f"{n:,}" for n in part.values())] for name, part in found.per_source().items()])
    if found.per_file():
        write_table(["evaluation file", "rows"], [[name, f"{count:,}"] for name, count in found.per_file().items()])
