"""Show what a model learns of one row, and why each turn trains or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import console, next_step, notice, write_json
from turnmill.errors import shell_word

if TYPE_CHECKING:
    from turnmill.report.explanation import Explanation


@configured("sources", "model", "read", "check", "filter", "render", "loss", "fit", "score", trailing=["ROW"])
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write the answer as a page.")
def command(call: Invocation, html: Path | None) -> None:
    """The row's text by kind, its tokens and labels, and why each message trains or not.

    DATA is raw data (with --model, or --template for text alone) or what `prepare` published. ROW is a row's number,
    counted from 0 over all the data, its id, or `all`. With `--score.on true` each token has its cost, too.
    """
    from turnmill.verbs.explain import Selection, explain
    from turnmill.verbs.recipes import prepared_folder

    selection = Selection(call.trailing[0])
    config = call.config.model_copy(update={"sources": call.sources})
    explanations = _shown(explain(config, call.origins, selection), as_json=call.json)
    if html is None:
        for _ in explanations:
            pass
    else:
        _write_page(explanations, html, f"turnmill explain {call.data} {selection.text}")
    if prepared_folder(config) is None:
        next_step(
            f"turnmill prepare {call.data} --model {shell_word(config.model.name_or_path or 'smollm2')} --output out"
        )
    else:
        next_step(f"turnmill quarantine show {call.data}")


def _shown(explanations: Iterator[Explanation], *, as_json: bool) -> Iterator[Explanation]:
    """The explanations, each printed as it passes."""
    from turnmill.report.terminal import show

    out = console()
    for explanation in explanations:
        write_json(explanation.as_json()) if as_json else show(explanation, out)
        yield explanation


def _write_page(explanations: Iterator[Explanation], path: Path, title: str) -> None:
    """The page, visible when it is whole."""
    from turnmill.files.disk import writing
    from turnmill.report.html import page

    draft = path.with_name(f".{path.name}.draft")
    with writing(path):
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.writelines(page(explanations, title))
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    notice(f"wrote {path}")
