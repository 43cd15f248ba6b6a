"""A prepared folder as data: where it is named, and its recipes read back."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from turnmill.errors import UsageError, shell_word
from turnmill.files.inventory import verify
from turnmill.verbs.census import is_prepared
from turnmill.verbs.prepared import KIND
from turnmill.verbs.tokenize import Recipe

if TYPE_CHECKING:
    from turnmill.config import Config, Origins


def data_of(config: Config) -> list[str]:
    """Every input of every source."""
    return [path for source in config.sources for path in source.data]


def prepared_folder(config: Config) -> Path | None:
    """The folder that `prepare` published, where the data are one; None where they are raw."""
    data = data_of(config)
    return Path(data[0]) if len(data) == 1 and is_prepared(Path(data[0])) else None


def stored_recipes(folder: Path, config: Config, origins: Origins) -> dict[str, Recipe]:
    """The recipes of a prepared folder by source, with what was typed now over them.

    `max_tokens` is 0 where another model or limit was typed: until that model is open.

    Raises:
        UsageError: it is not what `prepare` published.
    """
    manifest = verify(folder, whole=False)
    if manifest.get("kind") != KIND:
        raise UsageError(
            f"{folder} holds a step of a run, not what `prepare` published", next_step=f"ls {shell_word(folder)}"
        )
    typed = {name for name, origin in origins.items() if origin == "flag"}
    recipes: dict[str, Recipe] = {}
    for name, stored in manifest["recipe"].items():
        recipe = msgspec.convert(stored, Recipe)
        for section in ("model", "render", "loss", "fit"):
            given = getattr(config, section)
            names = [field.name for field in dataclasses.fields(given) if f"{section}.{field.name}" in typed]
            changed = {field: getattr(given, field) for field in names}
            recipe = dataclasses.replace(recipe, **{section: dataclasses.replace(getattr(recipe, section), **changed)})
        if {"fit.max_tokens", "model.name_or_path"} & typed:
            recipe = dataclasses.replace(recipe, max_tokens=0)
        recipes[name] = recipe
    return recipes
