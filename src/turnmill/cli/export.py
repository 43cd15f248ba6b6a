"""Write prepared data in the files of another trainer, with what loads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import click

from turnmill.cli.output import next_step, notice, write, write_json

FIELDS = ("weight", "loss", "loss_weight", "train", "trainable")


@click.command()
@click.argument("prepared", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--to", "target", required=True, metavar="NAME", help="Who takes it (`turnmill list exporters`).")
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="The folder; replaced whole.")
@click.option("--strict", is_flag=True, help="Refuse where the target has no form for something.")
@click.option(
    "--weight-field", type=click.Choice(FIELDS), default="weight", show_default=True, help="Of `messages`: what trains."
)
@click.option("--license", "licence", metavar="ID", help="Of the data, for the card: `cc-by-4.0`.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def command(prepared: Path, target: str, output: Path, weight_field: str, as_json: bool, **options: Any) -> None:
    """Writes OUT as NAME takes it, with the config or loader that it needs, and a card.

    Targets of tokens (trl, axolotl, levanter, tinker, megatron) get exactly what was prepared; those of messages render
    and mask anew, and what they have no form for is counted. Exit 3 under `--strict` where anything is.
    """
    from turnmill.api import open_prepared
    from turnmill.exporters import WeightField
    from turnmill.verbs import export

    field: WeightField = next(one for one in get_args(WeightField) if one == weight_field)
    made = export.export(open_prepared(prepared), target, output, weight_field=field, **options)
    if as_json:
        write_json(made.as_json(output))
        return
    for name, rows in made.rows.items():
        write(f"{output / name}: {rows:,} rows")
    for what, count in made.lost.items():
        notice(f"lost: {count:,} {what}")
    next_step(export.next_command(output, made))
