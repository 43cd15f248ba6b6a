"""Say what every source gives to an epoch: share, examples, tokens, passes."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import next_step, notice, write, write_json, write_table
from turnmill.errors import shell_word


@configured("sources", "read", "mix")
@click.option("--plan", is_flag=True, hidden=True, help="What it always does: print the plan, and write nothing.")
def command(call: Invocation, plan: bool) -> None:
    """Say what every source gives to an epoch of OUT; of raw DATA, if each row became one example."""
    from turnmill.verbs.census import is_prepared
    from turnmill.verbs.mix import as_json, of_data, of_folder, warnings_of
    from turnmill.verbs.read import open_sources

    paths = [Path(item) for source in call.sources for item in source.data]
    folder = paths[0] if len(paths) == 1 and is_prepared(paths[0]) else None
    mixed = of_folder(folder) if folder else of_data(open_sources(call.config), call.config)
    for warning in warnings_of(mixed):
        notice(f"warning: {warning}")
    if call.json:
        write_json(as_json(mixed))
        return
    rows = [
        [
            share.source, f"{share.weight:.2%}", f"{share.size.examples:,}", f"{share.drawn:,}",
            f"{share.tokens:,}" if folder else "", f"{share.passes:.2f}", share.says,
        ]
        for share in mixed
    ]  # fmt: skip
    write_table(["source", "share", "examples", "an epoch", "tokens", "passes", ""], rows)
    write(f"an epoch has {sum(share.drawn for share in mixed):,} examples")
    typed = shlex.join(call.arguments)
    next_step(f"turnmill census {shell_word(folder)}" if folder else f"turnmill prepare {typed} --output out")
