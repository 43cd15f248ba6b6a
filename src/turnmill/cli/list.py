"""List the plug-ins of a family: dialects, filters, ..."""

from __future__ import annotations

import click

from turnmill.cli.output import write, write_json, write_table


@click.command()
@click.argument("family", required=False)
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def command(family: str | None, as_json: bool) -> None:
    """The plug-ins of FAMILY, each with the first line of its documentation; without FAMILY, the families."""
    from turnmill.registry import families, family_registry

    if family is None:
        write_json(families()) if as_json else write("\n".join(families()))
        return
    registry = family_registry(family)
    summaries = {name: registry.summary(name) for name in registry.names()}
    if as_json:
        write_json([{"name": name, "summary": summary} for name, summary in summaries.items()])
    else:
        write_table(["name", "what it does"], list(summaries.items()))
