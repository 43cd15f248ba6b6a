"""Configs of other tools, read into ours: LLaMA-Factory's `dataset_info.json`, the YAML of Axolotl or palingenesis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turnmill.config_import.axolotl import import_axolotl, is_axolotl
from turnmill.config_import.dataset_info import import_dataset_info
from turnmill.config_import.imported import Imported
from turnmill.config_import.palingenesis import import_palingenesis
from turnmill.errors import UsageError
from turnmill.yaml_values import dump_yaml, load_yaml


def import_config(path: Path, names: Sequence[str] = ()) -> Imported:
    """Our config for another tool's.

    Args:
        path: a JSON file (`dataset_info.json`), or a YAML file.
        names: which of its data sets; none = all.

    Raises:
        UsageError: not readable, not of a known kind, no data set of that name, or one that was asked for by name and
            cannot be read.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {str(path)!r}: {error}", next_step=f"ls {path.parent}") from error
    if path.suffix == ".json":
        return import_dataset_info(_json_object(text, path), path.parent, names)
    tree, _ = load_yaml(text, str(path))
    if not isinstance(tree, dict):
        raise UsageError(f"{path}: expected a mapping of sections (model, data, preprocess)")
    if names:
        raise UsageError(f"{path}: names choose among the data sets of a dataset_info.json; this is none")
    return import_axolotl(tree) if is_axolotl(tree) else import_palingenesis(tree)


def _json_object(text: str, path: Path) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}") from None
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise UsageError(f"{path}: expected an object of data sets, as dataset_info.json has them")
    return value


def as_yaml(imported: Imported) -> str:
    """The config as YAML: notes as comments, then what differs from our defaults."""
    lines = [f"# {note}" for note in imported.notes]
    for name, value in imported.tree.items():
        if name == "sources":
            lines.append("sources:")
            for source in value:
                fields = [f"{key}: {dump_yaml(item)}" for key, item in source.items()]
                lines += [f"  {'- ' if number == 0 else '  '}{line}" for number, line in enumerate(fields)]
        elif isinstance(value, dict):
            lines += [f"{name}:", *(f"  {key}: {dump_yaml(item)}" for key, item in value.items())]
        else:
            lines.append(f"{name}: {dump_yaml(value)}")
    return "\n".join(lines)
