"""Show the effective config, its schema, or import another tool's."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from turnmill.cli.arguments import Invocation, configured
from turnmill.cli.output import next_step, write, write_json


@click.group()
def command() -> None:
    """Show the effective config, its schema, or import another tool's."""


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


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def import_config(file: Path, names: tuple[str, ...], as_json: bool) -> None:
    """Our YAML for another tool's config: LLaMA-Factory's dataset_info.json, or the YAML of Axolotl or palingenesis.

    NAMEs choose data sets of a dataset_info.json. What is not read, and where the tools differ, is said in comments.
    """
    from turnmill.config_import import as_yaml
    from turnmill.config_import import import_config as read_config

    imported = read_config(file, names)
    write_json({"config": imported.tree, "notes": imported.notes}) if as_json else write(as_yaml(imported))
    next_step(f"turnmill config import {shlex.join([str(file), *names])} > run.yaml; turnmill check run.yaml")


command.add_command(show)
command.add_command(import_config)
command.add_command(schema)
