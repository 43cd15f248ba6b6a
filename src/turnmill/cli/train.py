"""Train a model on a prepared folder, and on nothing else."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import console, next_step, notice, write, write_json
from turnmill.errors import StaleError, UsageError, shell_word

if TYPE_CHECKING:
    from turnmill.verbs.train import Place, Telling, TrainPlan


@configured("train", "evaluate", "model", "sources")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The folder of the trained model.")
@click.option("--replace", is_flag=True, help="Replace a trained model that is there.")
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint.")
@click.option("--resume-from", type=click.Path(path_type=Path), help="Go on from this checkpoint.")
@click.option("--prepare", "prepares", is_flag=True, help="Prepare the config's sources first, where that is needed.")
@click.option("--dry-run", is_flag=True, help="Check everything; load no model.")
def command(  # one parameter for each of its options
    call: Invocation,
    output: Path | None,
    replace: bool,
    resume: bool,
    resume_from: Path | None,
    prepares: bool,
    dry_run: bool,
) -> None:
    """Trains a model on OUT of `prepare`: `turnmill train OUT --output DIR`, or a config with `train.data`.

    The examples, labels, weights and order are those that were prepared; raw data are never read. Exit 4 where OUT is
    not there, not whole, or not what the config makes now.
    """
    from turnmill.files.publish import claim
    from turnmill.verbs import train
    from turnmill.verbs.trained import publish_trained

    place = _place(call, output, replace=replace, resume=resume, resume_from=resume_from)
    config = call.config if _is_config_alone(call) else call.config.model_copy(update={"sources": ()})
    again = _again(call, place)
    plan = _planned(call, config, place, again) if prepares else train.plan_of(config, call.origins, place, again)
    is_first = plan.ranks.rank == 0
    if dry_run:
        _answer_dry(call, plan)
        return
    if not is_first:
        train.run(plan, train.Telling())
        return
    with claim(place.output):  # from the first step until it is published: no other run comes between
        with _telling() as telling:
            trained = train.run(plan, telling)
        answer = publish_trained(trained)
    _answer(call, answer)


def _is_config_alone(call: Invocation) -> bool:
    return all(argument.endswith((".yaml", ".yml")) for argument in call.arguments)


def _place(call: Invocation, output: Path | None, **how: Any) -> Place:
    """Where the run reads and writes.

    Raises:
        UsageError: no prepared folder, several, or no output.
    """
    from turnmill.verbs.train import Place

    given = [argument for argument in call.arguments if not argument.endswith((".yaml", ".yml"))]
    if len(given) > 1:
        raise UsageError(f"got {len(given)} folders, expected one OUT of `prepare`", next_step="turnmill train --help")
    data = given[0] if given else call.config.train.data
    if data is None:
        what = "no data given: expected a prepared folder, or `train.data` in the config"
        raise UsageError(what, next_step="turnmill train OUT --output DIR")
    to = output or (Path(call.config.train.output) if call.config.train.output else None)
    if to is None:
        raise UsageError("no output given", next_step="--output model")
    return Place(Path(data).expanduser(), to, **how)


def _again(call: Invocation, place: Place) -> str:
    """The command that makes the data."""
    if place.data.is_file():
        return f"turnmill prepare {shell_word(place.data)} --model MODEL --output out"
    config = shlex.join(call.arguments) if _is_config_alone(call) and call.config.sources else "DATA --model MODEL"
    return f"turnmill prepare {config} --output {shell_word(place.data)}"


def _planned(call: Invocation, config: Any, place: Place, again: str) -> TrainPlan:
    """The plan, once the data are what the config makes.

    Raises:
        UsageError: the config has no sources, or several processes would prepare.
    """
    from turnmill.training.model import ranks_of_this
    from turnmill.verbs import train

    try:
        return train.plan_of(config, call.origins, place, again)
    except StaleError as stale:
        if not config.sources:
            what = f"{stale.message}; --prepare needs a config with sources"
            raise UsageError(what, next_step="turnmill train run.yaml --prepare") from stale
        if ranks_of_this().total > 1:
            raise UsageError(f"{stale.message}; one process prepares, before torchrun", next_step=again) from stale
        notice(f"preparing: {stale.message}")
    _prepare(call, place)
    return train.plan_of(config, call.origins, place, again)


def _prepare(call: Invocation, place: Place) -> None:
    from turnmill.files.publish import claim, refuse_foreign
    from turnmill.verbs.prepare import cache_of, plan_of, refuse_inputs_inside, run
    from turnmill.verbs.prepared import publish_prepared

    started = time.time()
    refuse_foreign(place.data)
    plan = plan_of(call.config)
    refuse_inputs_inside(plan, place.data)
    with claim(place.data):
        publish_prepared(plan, run(plan, cache_of(place.data, None)), place.data, started)
    for warning in plan.warnings:
        notice(f"warning: {warning}")


@contextmanager
def _telling() -> Iterator[Telling]:
    """Notices and a bar on stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from turnmill.verbs.train import Telling

    out = console(stderr=True)
    loss = TextColumn("{task.fields[loss]}")
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), loss, TimeRemainingColumn())
    with Progress(*columns, console=out, disable=not out.is_terminal, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("training", total=None, loss="", start=False)

        def begin(done: int, horizon: int) -> None:
            bar.update(task, total=horizon, completed=done)
            bar.start_task(task)

        def progress(step: int, last: float) -> None:
            bar.update(task, completed=step, loss=f"loss {last:.4f}")

        yield Telling(notice, begin, progress)


def _answer_dry(call: Invocation, plan: TrainPlan) -> None:
    counts = plan.data.manifest["counts"]
    if call.json:
        write_json({"output": str(plan.place.output), "data": str(plan.data.folder), "model": str(plan.directory),
                    "recipe": plan.recipe, "notes": plan.notes, "dry_run": True})  # fmt: skip
        return
    write(f"{plan.data.folder}: {counts['examples']:,} examples, {counts['trained_tokens']:,} trained tokens")
    for note in plan.notes:
        notice(note)
    write(f"{plan.directory} would be trained ({plan.options.method}), and published in {plan.place.output}")


def _answer(call: Invocation, answer: dict[str, Any]) -> None:
    output = answer["output"]
    if call.json:
        write_json(answer)
    else:
        loss, best = answer["loss"], answer["best"]
        fell = f", loss {loss['first']:.4f} → {loss['last']:.4f}" if loss else ""
        told = f", weights of step {best['step']:,} (eval/loss {best['loss']:.4f})" if best else ""
        write(f"{output}: optimizer steps {answer['steps']:,}{fell}{told}")
    next_step(f"turnmill evaluate {shell_word(output)}")
