"""Score a model on held-out rows."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import next_step, notice, progress, write, write_json, write_table
from turnmill.errors import shell_word

if TYPE_CHECKING:
    from turnmill.evaluation.paired import Difference
    from turnmill.evaluation.results import Evaluation, Loss
    from turnmill.verbs.evaluate import Evaluated


@configured("model", "read", "check", "health", "render", "loss", "fit", "evaluate", operand="MODEL")
@click.option("--data", multiple=True, metavar="[NAME=]PATH", help="Held-out rows: OUT, OUT#train, or raw; repeatable.")
@click.option(
    "--like",
    metavar="OUT",
    help="Prepared data whose recipe raw rows follow; default: those that the model learned from.",
)
@click.option("--battery", is_flag=True, help="Same as --evaluate.battery true.")
@click.option("--base", metavar="DIR", help="The model that the adapters in MODEL change.")
@click.option("--baseline", metavar="EVALUATION", help="An earlier result: rises above it are alarms.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The folder; replaced whole. Default: none.")
def command(call: Invocation, data: tuple[str, ...], output: Path | None, battery: bool, **given: Any) -> None:
    """Scores MODEL, a directory or adapters, on held-out rows: token-weighted losses by set and kind.

    Exit 3 where a loss lies above its floor, or rose above the baseline's: the result is published all the same.
    """
    from turnmill.verbs import evaluate
    from turnmill.verbs.eval_sets import Typed

    started = time.time()
    config = call.config
    if battery:
        config = config.model_copy(update={"evaluate": dataclasses.replace(config.evaluate, battery=True)})
    if output is not None:
        evaluate.refuse_other(output)
    typed = Typed(data, call.dialect, call.repairs)
    request = evaluate.Request(next(iter(call.trailing), None), typed, **given)
    made = evaluate.evaluate(config, call.origins, request, lambda total: progress("evaluate", total, "examples"))
    if output is not None:
        evaluate.publish_evaluated(made, output, config, started)
    for warning in made.warnings:
        notice(warning)
    for name, why in made.evaluation.missing.items():
        notice(f"{name} is missing: {why}")
    if call.json:
        write_json({**made.as_json(), "output": None if output is None else str(output), "alarms": made.alarms})
    else:
        _show(made)
    evaluate.alarm(made, output)
    if output is not None:
        next_step(f"turnmill compare {shell_word(output)} OTHER")


def _show(made: Evaluated) -> None:
    """Losses by set, then by kind; beside the baseline's where there is one."""
    found, beside = made.evaluation, made.baseline
    sets = [
        [name, *_cells(one.total), _number(one.entropy), f"{one.examples:,}", *_risen(beside and beside.sets, name)]
        for name, one in found.sets.items()
    ]
    groups = [[name, *_cells(loss), *_risen(beside and beside.groups, name)] for name, loss in found.groups.items()]
    more = ["against the baseline"] if beside else []
    write_table(["set", "loss", "perplexity", "tokens", "entropy", "examples", *more], sets)
    write("")
    write_table(["kind", "loss", "perplexity", "tokens", *more], groups)
    write("")
    write(f"eval/loss {found.loss:.4f}, eval/ppl {found.perplexity:.4g}{_of(found)}")


def _of(found: Evaluation) -> str:
    weighed = {name: one.importance for name, one in found.sets.items() if one.importance}
    if not weighed:
        return f", over {found.total.tokens:,} tokens"
    return f", of {' + '.join(f'{weight:g} x {name}' for name, weight in weighed.items())}"


def _cells(loss: Loss) -> list[str]:
    return [f"{loss.loss:.4f}", f"{loss.perplexity:.4g}", f"{loss.tokens:,}"]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _risen(differences: Mapping[Any, Difference] | None, name: str) -> list[str]:
    """The cell of a difference; no cell without a baseline."""
    if differences is None:
        return []
    one = differences.get(name)
    if one is None:
        return ["no rows in common"]
    error = "" if one.standard_error is None else f" ± {one.standard_error:.4f}"
    return [f"{one.difference:+.4f}{error}"]
