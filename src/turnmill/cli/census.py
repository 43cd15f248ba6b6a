"""Count what a run would make of data, or what OUT holds: rows, codes, tokens by kind, lengths."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import console, next_step, notice, progress, write_json
from turnmill.errors import UsageError, shell_word

if TYPE_CHECKING:
    from turnmill.verbs.read import OpenSource


@configured("model", "sources", "read", "check", "filter", "dedup", "render", "loss", "fit")
@click.option("--html", type=click.Path(dir_okay=False), metavar="FILE", help="Also write the census as one page.")
def command(call: Invocation, html: str | None) -> None:
    """Count what a run would make of DATA (with --model; characters with only --template), or what OUT holds."""
    folder = _prepared(call)
    found = _of_data(call) if folder is None else _of_folder(folder)
    if html is not None:
        _write_page(Path(html), found)
    for source in found["per_source"].values():
        for alarm in source.get("repair_alarms", []):
            notice(f"warning: {alarm}")
    if call.json:
        write_json(found)
        return
    from turnmill.report.census_text import census_lines

    out = console()
    for line in census_lines(found):
        out.print(line, soft_wrap=False)
    next_step(_prepare(call) if folder is None else f"turnmill explain {shell_word(folder)} 0")


def _prepared(call: Invocation) -> Path | None:
    """The folder that `prepare` published, where that is what was given."""
    from turnmill.verbs.census import is_prepared

    paths = [Path(item) for source in call.sources for item in source.data]
    return paths[0] if len(paths) == 1 and is_prepared(paths[0]) else None


def _of_folder(folder: Path) -> dict[str, Any]:
    from turnmill.verbs.census import of_folder

    return of_folder(folder)


def _of_data(call: Invocation) -> dict[str, Any]:
    from turnmill.models import open_model
    from turnmill.verbs.census import not_counted, of_data
    from turnmill.verbs.read import open_sources

    open_model(call.config.model)  # a wrong model is said before the data are read
    if left := not_counted(call.config):
        notice(f"not counted here, and left to prepare: {' and '.join(left)}")
    opened = open_sources(call.config)
    with progress("census", _rows(opened)) as advance:
        return of_data(opened, call.config, advance)


def _rows(opened: list[OpenSource]) -> int:
    return sum(shard.rows for source in opened for shard in source.plan.shards)


def _prepare(call: Invocation) -> str:
    """The command that makes what was counted."""
    named = call.config.model.name_or_path
    is_in_config = call.origins["model.name_or_path"] not in ("flag", "default")
    flags = [] if is_in_config else ["--model", named or "smollm2"]
    return shlex.join(["turnmill", "prepare", *call.arguments, *flags, "--output", "out"])


def _write_page(path: Path, census: dict[str, Any]) -> None:
    from turnmill.report.census_page import census_page

    try:
        path.write_text(census_page(census), "utf-8")
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem}", next_step="--html FILE") from problem
    notice(f"wrote {path}")
