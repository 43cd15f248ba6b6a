"""The config as it is written: nested mappings and lists, not yet checked, with the origin of each value.

What a mapping may hold is said by the types of its fields. A *section* is a class with typed fields: a dataclass of
options, or the whole config.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Sequence
from functools import cache
from typing import Any

from turnmill.config_import import palingenesis
from turnmill.config_sources import GLOBAL_SECTIONS, refusal
from turnmill.errors import UnknownName, UsageError, quote
from turnmill.yaml_values import KeyPath, load_yaml

TreeOrigins = dict[KeyPath, str]
"""Keys that lead to a value → `flag`, `argument`, or `FILE:LINE`."""


def override(tree: dict[str, Any], root: Any, origins: TreeOrigins, dotted: str, text: str) -> dict[str, Any]:
    """The tree with one field set to a value as typed; `origins` learns of it.

    Args:
        tree: of the whole config.
        root: the section that it will become.
        origins: of the tree's values.
        dotted: keys that lead to the field; an item of a list is named by its number, a source also by its name.
        text: its value as typed.

    Raises:
        UsageError: no such field, or not YAML.
    """
    where = f"--{dotted}"
    keys = dotted.split(".")
    if keys[0] == "sources" and len(keys) > 1:
        keys[1:] = _source_keys(tree.get("sources"), keys[1:], where)
    ours = None if keys[0] in types_of(root) else palingenesis.counterpart(dotted)
    if ours is not None:
        raise UsageError(f"{where}: unknown here. Did you mean --{ours}?", next_step="turnmill config schema")
    hint = root
    for number, key in enumerate(keys):
        hint = _type_of(hint, key, keys[:number], where)
    origins[tuple(keys)] = "flag"
    changed: dict[str, Any] = _replaced(tree, keys, _typed(text, hint, where), where)
    return changed


def conformed(value: Any, hint: Any, path: KeyPath, origins: TreeOrigins) -> Any:
    """A value of type `hint` with empty sections as {} and a single text as the list it stands for.

    Raises:
        UsageError: a key that is no field.
    """
    hint = _without_none(hint)
    if _is_section(hint) and (value is None or isinstance(value, dict)):
        fields = {}
        for key, item in (value or {}).items():
            kind = _type_of(hint, key, path, place_of((*path, key), origins))
            fields[key] = conformed(item, kind, (*path, key), origins)
        return fields
    if typing.get_origin(hint) is tuple:
        kind = typing.get_args(hint)[0]
        items = [value] if isinstance(value, str) and not _is_section(kind) else value
        if isinstance(items, list):
            return [conformed(item, kind, (*path, str(n)), origins) for n, item in enumerate(items)]
    return value


def place_of(path: KeyPath, origins: TreeOrigins) -> str:
    """`FILE:LINE: dotted.path`, or the flag, of a value."""
    dotted = ".".join(path)
    for end in range(len(path), 0, -1):
        origin = origins.get(path[:end])
        if origin == "flag":
            return f"--{dotted}"
        if origin is not None and origin != "argument":
            return f"{origin}: {dotted}"
    inside = [known for known, origin in origins.items() if origin == "flag" and known[: len(path)] == path]
    return f"--{'.'.join(inside[0])}" if inside else dotted


@cache
def types_of(section: Any) -> dict[str, Any]:
    """Field → type of a section."""
    hints = typing.get_type_hints(section)
    return {name: hints[name] for name in getattr(section, "model_fields", hints)}


def _replaced(node: Any, keys: list[str], value: Any, where: str) -> Any:
    if not keys:
        return value
    key, *rest = keys
    if isinstance(node, list):
        if not key.isdecimal() or int(key) >= len(node):
            raise UsageError(f"{where}: no item {quote(key)}, expected a number under {len(node)}")
        return [_replaced(item, rest, value, where) if str(n) == key else item for n, item in enumerate(node)]
    if node is not None and not isinstance(node, dict):
        raise UsageError(f"{where}: the config has {quote(node)} there, expected a mapping")
    mapping = node or {}
    return {**mapping, key: _replaced(mapping.get(key), rest, value, where)}


def _source_keys(sources: Any, keys: list[str], where: str) -> list[str]:
    """The keys with the source's name, which may hold dots, replaced by its number."""
    listed = sources if isinstance(sources, list) else []
    names = [str(source.get("name")) for source in listed if isinstance(source, dict)]
    for end in range(len(keys), 0, -1):
        name = ".".join(keys[:end])
        if name in names:
            return [str(names.index(name)), *keys[end:]]
    if keys[0].isdecimal() and int(keys[0]) < len(names):
        return keys
    raise _placed(UnknownName("source", keys[0], names), where)


def _typed(text: str, hint: Any, where: str) -> Any:
    """A flag's value: text where the field wants text, else YAML."""
    if _without_none(hint) is str:
        return None if text == "null" and hint is not str else text
    return load_yaml(text, where)[0]


def _type_of(hint: Any, key: str, parents: Sequence[str], where: str) -> Any:
    """The type of what `key` names in a value of type `hint`."""
    hint = _without_none(hint)
    if _is_section(hint):
        if key not in types_of(hint):
            raise _placed(_unknown_field(key, parents, hint), where)
        return types_of(hint)[key]
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return arguments[0]
    if typing.get_origin(hint) is dict:
        return arguments[1]
    if hint is Any:
        return Any
    raise UsageError(f"{where}: {'.'.join(parents)} is one value and has no fields")


def _unknown_field(key: str, parents: Sequence[str], section: Any) -> UsageError:
    if not parents and key in palingenesis.SECTIONS:
        message = f"{quote(key)} is a section of palingenesis; expected one of {', '.join(types_of(section))}"
        return UsageError(message, next_step="turnmill config import FILE")
    what = f"{parents[0].removesuffix('s')} field" if parents else "section"
    if parents and parents[0] != "sources":
        what = f"{parents[0]} field"
    if parents and parents[0] == "sources" and key in GLOBAL_SECTIONS:
        return refusal(key, GLOBAL_SECTIONS[key])
    ours = palingenesis.counterpart(".".join([*parents, key]))
    if ours is not None:
        return UsageError(f"unknown {what} {quote(key)}. Did you mean {ours!r}?", next_step="turnmill config schema")
    return UnknownName(what, key, types_of(section), next_step="turnmill config schema")


def _placed(error: UsageError, where: str) -> UsageError:
    """The same error, saying where it is."""
    return UsageError(f"{where}: {error.message}", next_step=error.next_step)


def _is_section(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or hasattr(hint, "model_fields")


def _without_none(hint: Any) -> Any:
    """`X` of `X | None`; another type as it is."""
    if not isinstance(hint, types.UnionType):
        return hint
    kinds = [kind for kind in typing.get_args(hint) if kind is not types.NoneType]
    return kinds[0] if len(kinds) == 1 else hint
