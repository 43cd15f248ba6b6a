"""Make packed, masked training data of raw chat files."""

from __future__ import annotations

import shlex
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from turnmill.cli.arguments import TYPED, Invocation, configured
from turnmill.cli.output import next_step, notice, progress, write, write_json
from turnmill.errors import shell_word


@configured()
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The folder to publish; replaced whole.")
@click.option("--cache", metavar="DIR|URL", help="Where finished steps are kept; default beside OUT.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
def command(call: Invocation, output: Path | None, cache: str | None, dry_run: bool) -> None:
    """Reads, checks, filters, deduplicates, splits, renders, tokenizes, cuts and packs, and publishes OUT whole."""
    from turnmill.errors import UsageError
    from turnmill.files.publish import claim, refuse_foreign
    from turnmill.verbs.prepare import cache_of, plan_of, refuse_inputs_inside, run
    from turnmill.verbs.prepared import publish_prepared

    started = time.time()
    if output is None:
        raise UsageError("no output given", next_step="--output out")
    refuse_foreign(output)
    steps = cache_of(output, cache)
    plan = plan_of(call.config)
    refuse_inputs_inside(plan, output)
    _say_choices(plan)
    if dry_run:
        _answer_dry(call, plan, output)
        return
    with claim(output), _Bars() as bars:
        prepared = run(plan, steps, bars)
        answer = publish_prepared(plan, prepared, output, started)
    for name, changed in prepared.remade.items():
        notice(f"made anew: {name} ({'; '.join(changed)})")
    for warning in plan.warnings:
        notice(f"warning: {warning}")
    _answer(call, answer, prepared)


class _Bars:
    """A progress bar a step."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._advance: Any = None
        self._done = 0

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *fault: object) -> None:
        self._stack.close()

    def __call__(self, name: str, done: int, total: int) -> None:
        if done == 0:
            self._stack.close()
            self._advance = self._stack.enter_context(progress(name, total, "rows"))
        elif self._advance is not None:
            self._advance(done - self._done)
        self._done = done


def _say_choices(plan: Any) -> None:
    """What was chosen where nothing was given."""
    for opened in plan.sources:
        for name, why in opened.reasons.items():
            notice(f"{opened.source.name}: {name} is {opened.dialects[name]} ({why})")
    if plan.config.read.keep_columns:
        notice(f"kept columns: {', '.join(plan.config.read.keep_columns)}")
    notice(f"template: {plan.model.template_origin}; an example holds at most {plan.max_tokens:,} tokens")


def _answer_dry(call: Invocation, plan: Any, output: Path) -> None:
    from turnmill.verbs.history import history_costs

    rows = {opened.source.name: sum(shard.rows for shard in opened.plan.shards) for opened in plan.sources}
    costs = history_costs(plan)
    if call.json:
        answer = {"output": str(output), "rows": rows, "max_tokens": plan.max_tokens, "dry_run": True}
        write_json({**answer, "history": costs})
    else:
        for name, count in rows.items():
            write(f"{name}: {count:,} rows would be read")
            _say_costs(costs[name])
        write(f"{output} would be published")
    typed = [
        argument for argument in click.get_current_context().meta[TYPED] if argument not in ("--dry-run", "--json")
    ]
    next_step(f"turnmill prepare {shlex.join(typed)}")


def _say_costs(cost: dict[str, Any]) -> None:
    """What each history would make of the rows that were measured."""
    modes = {
        mode: f"{made['examples']:,} examples, {made['tokens']:,} tokens"
        for mode, made in cost.items()
        if mode != "rows"
    }
    of_which = f"  of the first {cost['rows']:,} that stay"
    if len(set(modes.values())) == 1:
        write(f"{of_which}: {modes['final']} (the same with every render.history)")
        return
    write(f"{of_which}, with render.history")
    for mode, said in modes.items():
        write(f"    {mode:<8}  {said}")


def _answer(call: Invocation, answer: dict[str, Any], prepared: Any) -> None:
    if call.json:
        write_json(answer)
    else:
        rows = answer["rows"]
        write(
            f"{answer['output']}: {answer['examples']:,} examples in {answer['packs']:,} packs "
            f"({answer['fill']:.1%} full), "
            f"{answer['tokens']:,} tokens, {answer['trained_tokens']:,} of them trained"
        )
        write("rows: " + ", ".join(f"{count:,} {name}" for name, count in rows.items() if count))
        write("codes: " + (", ".join(f"{count:,} {code}" for code, count in answer["codes"].items()) or "none"))
        if any(result.extra["weighted"] for result in prepared.pack.results):
            notice("warning: some loss weights are neither 0 nor 1: `loss_weights` is written, and TRL ignores it")
    next_step(f"turnmill explain {shell_word(answer['output'])} 0")
