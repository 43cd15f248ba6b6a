"""List, explain, verify or prune the finished steps that runs keep."""

from __future__ import annotations

from pathlib import Path

import click

from turnmill.cli.output import next_step, notice, write, write_json, write_table
from turnmill.errors import StaleError, shell_word

PLACE = click.argument("place", metavar="OUT|CACHE", type=click.Path(path_type=Path))
KEEP = "Keep the steps of this folder, too; those of an OUT that is named as the place are kept."
JSON = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


@click.group()
def command() -> None:
    """List, explain, verify or prune the finished steps that runs keep (beside OUT, or in `--cache DIR`)."""


@click.command("list")
@PLACE
@JSON
def list_command(place: Path, as_json: bool) -> None:
    """Every finished step: name, version, size, age."""
    from turnmill.verbs import cache

    found = cache.entries(cache.cache_of(place))
    if as_json:
        write_json([entry.as_json for entry in found])
        return
    rows = [
        [entry.folder.name, str(entry.manifest.step.version), _size(entry.bytes), f"{entry.days:.1f}"]
        for entry in found
    ]
    write_table(["step", "version", "size", "days"], rows)
    write(f"{len(found)} steps, {_size(sum(entry.bytes for entry in found))}")
    next_step(f"turnmill cache verify {shell_word(place)}")


@click.command()
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--cache", "place", type=click.Path(path_type=Path), metavar="DIR", help="Where the steps are; default beside OUT."
)
@JSON
def explain(out: Path, place: Path | None, as_json: bool) -> None:
    """Why each step of OUT was made: what its recipe has otherwise than the run before."""
    from turnmill.verbs import cache

    found = cache.explain(out, cache.cache_of(place or out))
    if as_json:
        write_json(found)
        return
    for step in found:
        changed = step["changed"]
        if not step["is_cached"]:
            said = "gone from the cache"
        elif not isinstance(changed, list):
            said = "made once"
        else:
            said = "; ".join(map(str, changed))
        write(f"{step['name']:<14} {said}")
    next_step(f"turnmill cache list {shell_word(out)}")


@click.command()
@PLACE
@JSON
def verify(place: Path, as_json: bool) -> None:
    """Hash every file of every step; exit 4 where one is not what it was."""
    from turnmill.verbs import cache

    found = cache.cache_of(place)
    damaged = cache.damaged(found)
    for version, steps in cache.other_versions(found).items():
        notice(f"warning: {version} made {len(steps)} steps ({', '.join(sorted(set(steps)))})")
    if as_json:
        write_json({"steps": len(cache.entries(found)), "damaged": damaged})
    if damaged:
        folder, first = next(iter(damaged.items()))
        raise StaleError(f"{len(damaged)} damaged: {first}", next_step=f"rm -r {shell_word(folder)}")
    if not as_json:
        write(f"{len(cache.entries(found))} steps are whole")


@click.command()
@PLACE
@click.option("--keep", multiple=True, type=click.Path(path_type=Path), metavar="OUT", help=KEEP)
@click.option("--older-than", "days", type=click.FloatRange(0), default=0.0, metavar="DAYS", help="Only steps so old.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed; remove nothing.")
@JSON
def prune(place: Path, keep: tuple[Path, ...], days: float, dry_run: bool, as_json: bool) -> None:
    """Remove steps that no kept OUT was made of; OUT itself keeps its files."""
    from turnmill.verbs import cache

    found = cache.cache_of(place)
    kept = [*keep, *([place] if found != place else [])]
    chosen = cache.prunable(found, kept, days)
    if as_json:
        write_json({"removed": [entry.folder.name for entry in chosen], "dry_run": dry_run})
    else:
        for entry in chosen:
            write(f"{entry.folder.name}  {_size(entry.bytes)}")
        write(f"{len(chosen)} steps {'would be' if dry_run else 'are'} removed")
    if not dry_run:
        cache.prune(chosen)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


for inner in (list_command, explain, verify, prune):
    command.add_command(inner)
