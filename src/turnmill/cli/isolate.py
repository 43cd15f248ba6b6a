"""Find out whether a model keeps the examples of a packed row apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from turnmill.cli.output import write, write_json, write_table
from turnmill.errors import HealthError, shell_word

if TYPE_CHECKING:
    from turnmill.isolation import Found

DTYPES = ("auto", "float32", "bfloat16", "float16")


@click.command()
@click.argument("model", metavar="MODEL")
@click.option("--device", default="auto", help="`cpu`, `cuda`, `cuda:1`; a GPU where there is one.")
@click.option("--dtype", type=click.Choice(DTYPES), default="auto", help="Of the weights.")
@click.option("--attention", default="auto", help="As transformers names it: `sdpa`, `eager`, `flash_attention_2`.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def command(model: str, device: str, dtype: str, attention: str, as_json: bool) -> None:
    """Runs the model of a directory over rows of examples: does what stands before an example change its logits?

    Exit 0 where a packed row is as good as its examples alone, 3 where examples leak into each other: train and score
    such a model with a row an example.
    """
    from turnmill.causal_lm import Placement
    from turnmill.verbs import isolate

    verdict = isolate.isolate(model, Placement(device, dtype, attention))
    if as_json:
        write_json(isolate.as_json(verdict))
    else:
        write_table(["layout", "leak", "difference", "verdict"], [_row(one) for one in verdict.found])
        write(f"feed it: {verdict.layout}")
    if not verdict.isolates:
        raise HealthError(
            verdict.reason, next_step=f"turnmill prepare DATA --model {shell_word(model)} --pack.on false"
        )
    if not as_json:
        write(verdict.reason)


def _row(found: Found) -> list[str]:
    return [found.layout, f"{found.leak:.2g}", f"{found.difference:.2g}", found.fault or "exact within rounding"]
