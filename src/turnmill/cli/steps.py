"""List, show, run or draw graphs of steps: what is built of what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, notice, write, write_json, write_table
from turnmill.errors import shell_word
from turnmill.steps.store import Place, place_of

if TYPE_CHECKING:
    from turnmill.steps.graph import Outcome
    from turnmill.verbs.render import Wording

TARGETS = click.argument("targets", metavar="SOURCE[/STAGE]|FILE.py:FUNCTION...", nargs=-1)
CACHE = click.option(
    "--cache", metavar="DIR|URL", help="Where finished steps lie, a folder or a store; default in ~/.cache."
)
TEMPLATE = click.option("--template", metavar="FILE|NAME", default="chatml", show_default=True, help="Words the chats.")
JSON = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


@click.group()
def command() -> None:
    """List, show, run or draw graphs of steps: those of sources, or of a Python file."""


@click.command("list")
@TARGETS
@CACHE
@TEMPLATE
@JSON
def list_command(targets: tuple[str, ...], cache: str | None, template: str, as_json: bool) -> None:
    """Every step of the targets, what is needed first; without a target, of all sources."""
    from turnmill.verbs import steps

    named = targets or tuple(steps.all_names())
    found = steps.listed(steps.nodes_named(named, wording_of(template)), place_of(cache, steps.default_cache()))
    if as_json:
        write_json(found)
        return
    rows = [[str(one["name"]), f"{one['fingerprint']:.12}", "built" if one["built"] else ""] for one in found]
    write_table(["step", "fingerprint", ""], rows)
    next_step(f"turnmill steps run {shell_word(named[0])} --dry-run" if named else "turnmill steps run --help")


@click.command()
@click.argument("target", metavar="SOURCE/STAGE|FOLDER")
@CACHE
@TEMPLATE
@JSON
def show(target: str, cache: str | None, template: str, as_json: bool) -> None:
    """The record of a finished step: recipe, inputs, counts, what it made, and with which versions."""
    from turnmill.verbs import steps

    found: dict[str, Any] = steps.record(
        steps.folder_of(target, place_of(cache, steps.default_cache()), wording_of(template))
    )
    if as_json:
        write_json(found)
        return
    write(f"{found['name']} (version {found['version']}), {found['folder']}")
    write_table(["what", "is"], [[key, str(value)] for key, value in _facts(found)])
    next_step(f"turnmill cache verify {shell_word(Path(found['folder']).parent)}")


def _facts(found: dict[str, Any]) -> list[tuple[str, Any]]:
    inputs = [(f"input {one['fingerprint'][:12]}", one["folder"] or "not in this cache") for one in found["inputs"]]
    result = found["result"] if isinstance(found["result"], dict) else {}
    made = [(f"made: {key}", value) for key, value in result.items()]
    files = [("files", f"{len(found['files'])}, {sum(one['bytes'] for one in found['files']):,} bytes")]
    return [*inputs, *found["counters"].items(), *made, *files, *found["made_by"].items()]


@click.command()
@TARGETS
@CACHE
@TEMPLATE
@click.option("--max-concurrent", type=click.IntRange(1), default=2, show_default=True, help="Steps at once.")
@click.option("--workers", type=click.IntRange(1), help="Shards of a step at once; default: cores.")
@click.option("--executor", default="local", show_default=True, help="What runs shards (`turnmill list executors`).")
@click.option("--dry-run", is_flag=True, help="Say what would be made, and make nothing.")
@JSON
def run(  # noqa: PLR0913  # an option each
    targets: tuple[str, ...],
    cache: str | None,
    template: str,
    max_concurrent: int,
    workers: int | None,
    executor: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Builds the targets and what they need, each step once, whoever else builds it.

    A step that fails stops those that need it, and no other; what is finished stays.
    """
    from turnmill.errors import UsageError
    from turnmill.steps.graph import check_outcomes
    from turnmill.steps.graph import run as run_graph
    from turnmill.verbs import steps

    if not targets:
        raise UsageError("no step named; expected a source, SOURCE/STAGE or FILE.py:FUNCTION", next_step=LIST)
    place, store = place_of(cache, steps.default_cache())
    outcomes = run_graph(
        steps.nodes_named(targets, wording_of(template)),
        place,
        engine=steps.engine_of(executor, workers, store),
        max_concurrent=max_concurrent,
        dry_run=dry_run,
        tell=lambda outcome: None if as_json else tell(outcome),
    )
    if as_json:
        write_json([{**steps.described(one.node, Place(place, store)), "state": one.state} for one in outcomes])
    check_outcomes(outcomes)
    if not as_json:
        next_step(f"turnmill steps show {shell_word(outcomes[-1].node.folder(place))}" if not dry_run else LIST)


def wording_of(template: str) -> Wording:
    """What chats are rendered with: a template alone."""
    from turnmill.verbs.render import template_alone

    return template_alone(template)


LIST = "turnmill steps list"
WORDS = {"to-make": "would be made", "not-run": "not run"}


def tell(outcome: Outcome) -> None:
    """A line on what became of a step."""
    word = WORDS.get(outcome.state, outcome.state)
    detail = f" in {outcome.seconds:.1f} s" if outcome.state == "made" else ""
    if outcome.error is not None:
        detail = f": {outcome.error}"
    if outcome.because is not None:
        detail = f": {outcome.because} failed"
    (notice if outcome.state in ("failed", "not-run") else write)(f"{outcome.node.name:<40} {word}{detail}")


@click.command()
@TARGETS
@CACHE
@TEMPLATE
def graph(targets: tuple[str, ...], cache: str | None, template: str) -> None:
    """The targets' graph as a Mermaid flowchart, for a page or `mmdc`."""
    from turnmill.steps.graph import mermaid
    from turnmill.verbs import steps

    place, store = place_of(cache, steps.default_cache())
    nodes = steps.nodes_named(targets or tuple(steps.all_names()), wording_of(template))
    write(mermaid(nodes, lambda node: "built" if node.is_built(place, store) else ""))


for verb in (list_command, show, run, graph):
    command.add_command(verb)
