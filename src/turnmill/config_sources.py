"""What a source may say for itself: its own options over those of the sections, by one rule for every verb.

A field of `Source` that is named as a section holds that section's overrides, nested as the section is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from turnmill.errors import UsageError
from turnmill.options import Source

SECTIONS = ("read", "check", "health", "filter", "split", "render", "loss", "fit")
"""Those that a source may override, in the order of the line."""

GLOBAL_SECTIONS = {
    "model": "the examples of a run are made for one model",
    "dedup": "it compares the rows of all sources",
    "decontaminate": "the rows of all sources are compared with the same evaluation data",
    "pack": "a pack holds examples of all sources",
    "seed": "it is drawn from over all sources",
    "workers": "the sources share them",
    "executor": "the sources share it",
    "accelerate": "it changes how a run is made, not what",
}
"""Sections and top fields that no source can have for itself, and why."""

GLOBAL_FIELDS = {
    "read.keep_columns": "the rows of all sources stand in one table",
    "split.per_source": "it says how the sources are held out together",
    "split.near": "near-duplicates are looked for in all sources together",
    "fit.max_tokens": "a pack holds examples of all sources",
}
"""Fields of the other sections that no source can have for itself, and why."""

SCHEMA_COMMAND = "turnmill config schema"


def own_sections(source: Source) -> dict[str, dict[str, Any]]:
    """Section → the source's overrides of it, those that there are.

    Raises:
        UsageError: a field that holds for all sources.
    """
    fields = [field.name for field in dataclasses.fields(source)]
    found = {name: getattr(source, name) for name in fields if name in SECTIONS and getattr(source, name)}
    for dotted, why in GLOBAL_FIELDS.items():
        section, _, field = dotted.partition(".")
        if field in found.get(section, {}):
            raise refusal(dotted, why)
    return found


def refusal(dotted: str, why: str) -> UsageError:
    """The error for an option that no source can have for itself."""
    message = f"{dotted} cannot be set for one source: {why}; expected it in the section of that name"
    return UsageError(message, next_step=f"--{dotted} VALUE")


def merged(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the overrides over them, mappings inside them likewise."""
    result = dict(values)
    for key, value in overrides.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[key] = merged(below, value)
        else:
            result[key] = value
    return result


def with_own_sections(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of the config with the sources' overrides spelled out."""
    definitions = schema["$defs"]
    own = definitions["Source"]["properties"]
    for section in SECTIONS:
        title = section.capitalize()
        fields = {
            name: {key: value for key, value in field.items() if key != "default"}
            for name, field in definitions[title]["properties"].items()
            if f"{section}.{name}" not in GLOBAL_FIELDS
        }
        definitions[f"Source{title}"] = {"type": "object", "properties": fields, "additionalProperties": False}
        own[section] = {"$ref": f"#/$defs/Source{title}", "description": own[section]["description"]}
    return schema
