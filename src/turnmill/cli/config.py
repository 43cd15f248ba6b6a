"""Show the effective config, or what a config file may hold."""

from __future__ import annotations

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import write, write_json


@click.group()
def command() -> None:
    """Show the effective config, or what a config file may hold."""


@configured()
@click.option("--origins", is_flag=True, help="Say where each value comes from.")
def show(call: Invocation, origins: bool) -> None:
    """The effective config as YAML: defaults, then the file, then flags."""
    from turnmill.config import as_yaml

    if call.json:
        document = {"config": call.config.model_dump(mode="json")} | ({"origins": call.origins} if origins else {})
        write_json(document)
    else:
        write(as_yaml(call.config, call.origins if origins else None))


@click.command()
def schema() -> None:
    """The JSON Schema of a config file."""
    import json

    from turnmill.config import json_schema

    write(json.dumps(json_schema(), indent=2, ensure_ascii=False))


command.add_command(show)
command.add_command(schema)
