"""List, show, run or verify sources: public datasets pinned to their bytes, as chats and as texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, write, write_json, write_table
from turnmill.cli.steps import CACHE, JSON, TEMPLATE, tell, wording_of
from turnmill.errors import StaleError, quote, shell_word
from turnmill.steps.store import place_of

if TYPE_CHECKING:
    from turnmill.verbs.sources import Shown, Verified

NAME = click.argument("name", metavar="NAME|FILE.py:FUNCTION")
LIMIT = click.option("--limit", type=click.IntRange(1), metavar="N", help="N records, of the first file alone.")
WORKERS = click.option("--workers", type=click.IntRange(1), help="Shards at once; default: cores.")


@click.group()
def command() -> None:
    """List, show, run or verify sources: public datasets pinned to their bytes."""


@command.command("list")
@JSON
def list_command(as_json: bool) -> None:
    """Every source, its weight in tokens and its licence; and the datasets that cannot be one, and why."""
    from turnmill.sources import UNRECOVERABLE, all_sources
    from turnmill.verbs import sources

    found = [sources.described(name) for name in all_sources()]
    if as_json:
        write_json({"sources": found, "unrecoverable": UNRECOVERABLE})
        return
    rows = [[str(one["name"]), f"{one['tokens']:.2g}", str(one["licence"]), str(one["summary"])] for one in found]
    write_table(["source", "tokens", "licence", "what"], rows)
    if UNRECOVERABLE:
        write("")
        write_table(["no source", "why"], [list(pair) for pair in UNRECOVERABLE.items()])
    next_step(f"turnmill sources show {shell_word(found[0]['name'])}")


@command.command()
@NAME
@JSON
def show(name: str, as_json: bool) -> None:
    """What a source is made of: pin, dialect, repairs, columns, weight, licence."""
    from turnmill.verbs import sources

    found: dict[str, Any] = sources.described(name)
    if as_json:
        write_json(found)
        return
    write_table(["what", "is"], [[key.replace("_", " "), _cell(value)] for key, value in found.items()])
    next_step(f"turnmill sources run {shell_word(name)} --limit 100")


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:,.0f}" if isinstance(value, float) else str(value)


@command.command()
@NAME
@CACHE
@LIMIT
@TEMPLATE
@WORKERS
@click.option("--executor", default="local", show_default=True, help="What runs shards (`turnmill list executors`).")
@JSON
def run(  # an option each
    name: str,
    cache: str | None,
    limit: int | None,
    template: str,
    workers: int | None,
    executor: str,
    as_json: bool,
) -> None:
    """Fetches a source and makes its chats, rendered texts and normalised texts; what is made already stays."""
    from turnmill.steps.graph import check_outcomes
    from turnmill.steps.graph import run as run_graph
    from turnmill.verbs import sources, steps
    from turnmill.verbs.source_steps import Limits, nodes_of

    place, store = place_of(cache, steps.default_cache())
    nodes = nodes_of(name, wording_of(template), Limits(limit))
    outcomes = run_graph(
        [nodes.normalized],
        place,
        engine=steps.engine_of(executor, workers, store),
        tell=lambda outcome: None if as_json else tell(outcome),
    )
    check_outcomes(outcomes)
    made = {stage: nodes.named[stage].folder(place) for stage in ("conversations", "rendered", "normalized")}
    if as_json:
        write_json({stage: steps.record(folder) for stage, folder in made.items()})
        return
    write_table(["artifact", "rows", "folder"], [[stage, _rows(folder), str(folder)] for stage, folder in made.items()])
    entry = sources.mix_entries([name], {name: made["conversations"]})[0]
    write("")
    write(f"in a config: sources: [{json.dumps(entry)}]")
    next_step(f"turnmill sources verify {shell_word(name)}" + (f" --limit {limit}" if limit else ""))


def _rows(folder: Path) -> str:
    from turnmill.verbs import steps

    result: Any = steps.record(folder)["result"]
    return f"{result['rows']:,}"


@command.command()
@NAME
@CACHE
@LIMIT
@TEMPLATE
@click.option("--rows", type=click.IntRange(0), default=2, show_default=True, help="Shown of each kind.")
@JSON
def verify(name: str, cache: str | None, limit: int | None, template: str, rows: int, as_json: bool) -> None:
    """Counts at each stage against the records of the source, and some rows beside their originals.

    Exit 4 where a row is gone that no count explains.
    """
    from turnmill.steps.build import Engine
    from turnmill.verbs import sources, steps
    from turnmill.verbs.source_steps import Limits, nodes_of

    nodes = nodes_of(name, wording_of(template), Limits(limit))
    place, store = place_of(cache, steps.default_cache())
    found = sources.verify(name, nodes, place, rows, Engine(store=store))
    if as_json:
        write_json(_as_json(found))
    else:
        write_table(["rows", "count"], [[word, f"{count:,}"] for word, count in found.stages])
        if found.codes:
            write("")
            write_table(["code", "rows"], [[code, f"{count:,}"] for code, count in found.codes.items()])
        for one in found.shown:
            _show(one)
    if found.lost:
        raise StaleError(
            f"{found.lost:,} rows of {name} are gone, and no count says where",
            next_step=f"turnmill steps list {shell_word(name)}",
        )
    if not as_json:
        next_step(f"turnmill sources run {shell_word(name)}" + (f" --limit {limit}" if limit else ""))


def _as_json(found: Verified) -> dict[str, Any]:
    return {
        "stages": dict(found.stages), "codes": found.codes, "lost": found.lost,
        "rows": [one._asdict() for one in found.shown],
    }  # fmt: skip


SHOWN_CHARACTERS = 600


def _show(one: Shown) -> None:
    write("")
    write(f"{one.source_file}:{one.source_line}")
    write(f"  published  {_cut(one.original)}")
    if one.why is not None:
        write(f"  left       {one.why}")
    for turn in one.turns or []:
        kind, *rest = turn
        write(f"  {kind!s:<10} {' '.join(quote(part, 200) for part in rest)}")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text):,} characters)"
