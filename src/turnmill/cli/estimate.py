"""Say how many examples, tokens, packs and steps an epoch will have, from some of the rows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import next_step, progress, write, write_json, write_table


@configured()
@click.option("--packs-per-step", type=click.IntRange(1), default=1, show_default=True, metavar="N",
              help="Packs of an optimiser step: of all ranks and accumulated batches.")  # fmt: skip
def command(call: Invocation, packs_per_step: int) -> None:
    """Estimate an epoch of DATA to `estimate.precision`; of OUT it is counted."""
    from turnmill.verbs.census import is_prepared
    from turnmill.verbs.estimate import of_data, of_folder
    from turnmill.verbs.prepare import plan_of

    paths = [Path(item) for source in call.sources for item in source.data]
    if len(paths) == 1 and is_prepared(paths[0]):
        found = of_folder(paths[0], packs_per_step)
    else:
        run = plan_of(call.config, is_hashed=False)
        with progress("estimate", None, "rows") as advance:
            found = of_data(run, packs_per_step, advance)
    if call.json:
        write_json(found)
        return
    _say(found)
    next_step(f"turnmill prepare {shlex.join(call.arguments)} --output out")


def _say(found: Any) -> None:
    rows = [
        [
            name, f"{one['rows']:,}", f"{one['duplicates']:,}", f"{one['looked_at']:,}", _number(one["examples"]),
            _number(one["tokens"]), _number(one["trained_tokens"]), f"{one['passes']:.2f}",
        ]
        for name, one in found["sources"].items()
    ]  # fmt: skip
    if rows:
        headings = ["source", "rows", "duplicates", "looked at", "examples", "tokens", "trained", "passes"]
        write_table(headings, rows)
    how = "counted" if found["exact"] else f"± {found['error']:.2%} of the tokens (two standard deviations)"
    write(
        f"an epoch: {_number(found['examples'])} examples, {_number(found['tokens'])} tokens, "
        f"{_number(found['trained_tokens'])} of them trained; {found['packs']:,} packs {found['fill']:.1%} full, "
        f"{found['steps']:,} steps; {how}"
    )


def _number(value: dict[str, float]) -> str:
    error = f" ± {value['error']:,.0f}" if value["error"] >= 1 else ""
    return f"{value['total']:,}{error}"
