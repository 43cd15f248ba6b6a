"""YAML as turnmill reads it: version 1.2's core schema, no duplicate keys, a line for every value."""

from __future__ import annotations

import re
from typing import Any

import yaml

from turnmill.errors import UsageError, quote

KeyPath = tuple[str, ...]
"""Keys and list indexes that lead to a value."""

_CORE_SCHEMA = (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN\0"),
    ("tag:yaml.org,2002:merge", r"<<", "<"),
)
_COLLECTIONS = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:str"}
_TAGS = _COLLECTIONS | {tag for tag, _, _ in _CORE_SCHEMA}


class _Loader(yaml.SafeLoader):
    """Without version 1.1's surprises: `on`, `no`, `12:30` and `2025-01-01` are text, `1e-3` is a number."""


class _Dumper(yaml.SafeDumper):
    """Quotes what either version of YAML would take for something else than text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Text on one line: what is not printable, or ends a line, is escaped."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _represent_text)

_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in _CORE_SCHEMA:
    for _schema in (_Loader, _Dumper):
        _characters = [character.strip("\0") for character in _first]
        _schema.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), _characters)


def load_yaml(text: str, name: str) -> tuple[Any, dict[KeyPath, int]]:
    """The document in `text`, and the line (1-based) where each value stands.

    Args:
        text: one YAML document; empty gives None.
        name: what to call it in messages.

    Raises:
        UsageError: not YAML, several documents, a duplicate key, or a tag beyond the core schema.
    """
    lines: dict[KeyPath, int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        value = None if node is None else _value(loader, node, (), lines)
    except yaml.YAMLError as error:
        raise UsageError(f"{name}: {_one_line(error)}") from error
    return value, lines


def dump_yaml(value: Any) -> str:
    """A value as YAML on one line."""
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=2**31)
    return text.removesuffix("\n").removesuffix("\n...")


def _value(loader: _Loader, node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    if node.tag not in _TAGS:
        raise yaml.MarkedYAMLError(problem=f"tag {quote(node.tag)} is not supported", problem_mark=node.start_mark)
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, item, (*path, str(index)), lines) for index, item in enumerate(node.value)]
    return loader.construct_object(node)


def _mapping(loader: _Loader, node: yaml.MappingNode, path: KeyPath, lines: dict[KeyPath, int]) -> dict[str, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be text", problem_mark=key.start_mark)
        if key.value in seen:
            raise yaml.MarkedYAMLError(problem=f"duplicate key {quote(key.value)}", problem_mark=key.start_mark)
        seen.add(key.value)
    loader.flatten_mapping(node)
    mapping = {}
    for key, item in node.value:
        lines[(*path, key.value)] = key.start_mark.line + 1
        mapping[key.value] = _value(loader, item, (*path, key.value), lines)
    return mapping


def _one_line(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"not valid YAML: {where}{' '.join(str(problem).split())}"
