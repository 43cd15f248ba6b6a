"""One config: the verbs' options as one tree, read from YAML and from flags, each value with its origin.

    config, origins = load("run.yaml", [("loss.turns", "last"), ("sources.chat.dialect", "sharegpt")])

The fields are the dataclasses of `turnmill.options`; pydantic only checks what is given and describes the tree.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from turnmill import options
from turnmill.config_sources import merged, own_sections, with_own_sections
from turnmill.config_tree import TreeOrigins, conformed, override, place_of
from turnmill.conversation import COLUMNS, canonical_json
from turnmill.errors import UsageError, quote, redacted
from turnmill.yaml_values import KeyPath, dump_yaml, load_yaml

SCHEMA_COMMAND = "turnmill config schema"
SHOW_COMMAND = "turnmill config show"

Origins = dict[str, str]
"""Dotted path of a field → `default`, `flag`, `argument`, or `FILE:LINE`."""


class Config(BaseModel):
    """A whole run: what is read, and what is made of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)

    seed: int = 0
    """Of every random draw."""
    limit: int | None = None
    """Read at most so many rows of each source."""
    workers: int | None = None
    """Processes; default the number of cores."""
    executor: str = "local"
    """What runs the shards of a step: `local`, `inline`, `ray` (`turnmill list executors`); no byte hangs on it."""
    accelerate: bool = True
    """Take the faster ways to the same bytes; each is proven against the plain one, and left where it fails."""
    model: options.Model = options.Model()
    """The model whose template and tokenizer the data are made for."""
    sources: tuple[options.Source, ...] = ()
    """What is read: a list of named inputs."""
    read: options.Read = options.Read()
    """How files are read."""
    check: options.Check = options.Check()
    """Policies of the chat contract."""
    health: options.Health = options.Health()
    """How many rows a source may lose in read, repair and check."""
    filter: options.Filter = options.Filter()
    """Which filters run, and their options."""
    dedup: options.Dedup = options.Dedup()
    """Which duplicates leave."""
    decontaminate: options.Decontaminate = options.Decontaminate()
    """Which rows leave because evaluation data hold what they say."""
    split: options.Split = options.Split()
    """Which rows are held out for evaluation."""
    render: options.Render = options.Render()
    """How a conversation becomes text."""
    loss: options.Loss = options.Loss()
    """Which spans the model learns from, and how much."""
    fit: options.Fit = options.Fit()
    """How long an example may be."""
    score: options.Score = options.Score()
    """How well a model already knows each row."""
    select: options.Select = options.Select()
    """Which rows a model learns from."""
    mix: options.Mix = options.Mix()
    """How much of each source an epoch has."""
    estimate: options.Estimate = options.Estimate()
    """How an epoch is estimated."""
    pack: options.Pack = options.Pack()
    """How examples are laid into rows of `fit.max_tokens`."""
    train: options.Train = options.Train()
    """How a model is trained on a prepared folder."""
    evaluate: options.Evaluate = options.Evaluate()
    """What held-out rows cost a model."""

    def of(self, source: options.Source) -> Config:
        """The config as it holds for one of its sources: the source's own options over those of the sections.

        Raises:
            UsageError: an option that is unknown, has a wrong value, or holds for all sources.
        """
        own = own_sections(source)
        given = {name: merged(dataclasses.asdict(getattr(self, name)), own[name]) for name in own}
        changed = _validated(given, {}) if given else self
        update = {name: getattr(changed, name) for name in own}
        if source.limit is not None:
            update["limit"] = source.limit
        return self.model_copy(update=update) if update else self


BOUNDS: dict[str, tuple[float, float]] = {
    "limit": (1, inf),
    "workers": (1, inf),
    "read.max_record_bytes": (1, inf),
    "check.max_turn_characters": (1, inf),
    "check.max_observation_characters": (1, inf),
    "health.max_rejected": (0, 1),
    "health.min_rows": (0, inf),
    "filter.length_bounds.min_turns": (0, inf),
    "filter.length_bounds.max_turns": (1, inf),
    "filter.length_bounds.min_characters": (0, inf),
    "filter.length_bounds.max_characters": (1, inf),
    "filter.length_bounds.min_answer_characters": (0, inf),
    "filter.length_bounds.max_answer_characters": (1, inf),
    "filter.encoding_damage.min_marks": (1, inf),
    "filter.repetition_loops.min_repeats": (3, inf),
    "filter.repetition_loops.min_characters": (1, inf),
    "dedup.near.threshold": (0.3, 1),
    "dedup.near.ngram": (1, 100),
    "decontaminate.ngram": (1, 100),
    "split.fraction": (0, 1),
    "split.rows": (0, inf),
    "fit.max_tokens": (1, inf),
    "score.max_batch_tokens": (1, inf),
    "score.threads": (1, inf),
    "score.concurrency": (1, inf),
    "score.timeout_s": (0.001, inf),
    "estimate.precision": (0, 1),
    "evaluate.samples": (1, inf),
    "evaluate.regression_floor": (0, inf),
    "evaluate.regression_rise": (0, inf),
    "evaluate.max_batch_tokens": (1, inf),
    "evaluate.threads": (1, inf),
    "mix.max_passes": (0, inf),
    "mix.epochs": (1, inf),
    "select.rows": (1, inf),
    "select.tokens": (1, inf),
    "select.min_perplexity": (0, inf),
    "select.max_perplexity": (0, inf),
    "select.min_tokens": (0, inf),
    "select.max_tokens": (1, inf),
    "train.lora.rank": (1, inf),
    "train.lora.dropout": (0, 1),
    "train.batch_size": (1, inf),
    "train.gradient_accumulation_steps": (1, inf),
    "train.epochs": (1, inf),
    "train.max_steps": (1, inf),
    "train.learning_rate": (0, inf),
    "train.min_learning_rate": (0, inf),
    "train.warmup_ratio": (0, 1),
    "train.weight_decay": (0, inf),
    "train.max_grad_norm": (0, inf),
    "train.threads": (1, inf),
    "train.loader_workers": (0, inf),
    "train.eval_every": (0, inf),
    "train.patience": (1, inf),
    "train.save_every": (1, inf),
    "train.keep_checkpoints": (1, inf),
    "train.log_every": (1, inf),
}
"""Least and greatest value of the fields that have one."""


class FieldHelp(NamedTuple):
    """One field as `--help` lists it."""

    path: str
    default: str
    text: str


def load(
    path: str | Path | None,
    overrides: Sequence[tuple[str, str]] = (),
    data: Sequence[str] = (),
    dialect: str | None = None,
    repairs: str | None = None,
) -> tuple[Config, Origins]:
    """The effective config, and where each of its values comes from.

    Args:
        path: a YAML file, or None for the defaults.
        overrides: dotted path and value as typed, the last one of a path wins. An item of a list is named by its
            number, a source also by its name.
        data: inputs as typed on the command line (`PATH` or `NAME=PATH`), a source each, in place of the file's.
        dialect: of the inputs in `data`.
        repairs: names with commas between, of the inputs in `data`.

    Raises:
        UsageError: not readable, not YAML, an unknown field, or a value of the wrong type.
    """
    for what, given in (("dialect", dialect), ("repairs", repairs)):
        if given is not None and not data:
            of = f"--{what} is that of the data on the command line"
            raise UsageError(f"{of}, and there is none: use --sources.NAME.{what}", next_step=SHOW_COMMAND)
    tree, origins = ({}, {}) if path is None else _read(Path(path))
    if data:
        for known in [known for known in origins if known[:1] == ("sources",)]:
            del origins[known]
        tree["sources"] = sources_of(data, dialect, repairs)
        origins[("sources",)] = "argument"
    for dotted, text in overrides:
        tree = override(tree, Config, origins, dotted, text)
    config = _validated(tree, origins)
    _check_sources(config, origins)
    _check_columns(config.read.keep_columns, place_of(("read", "keep_columns"), origins))
    return config, dict(_origins_of_fields(config, origins))


def reloaded(stored: dict[str, Any], overrides: Sequence[tuple[str, str]] = ()) -> Config:
    """A config that was stored as JSON, with flags over it.

    Raises:
        UsageError: an unknown field, or a value of the wrong type.
    """
    origins: TreeOrigins = {}
    for dotted, text in overrides:
        stored = override(stored, Config, origins, dotted, text)
    config = _validated(stored, origins)
    _check_sources(config, origins)
    return config


def effective_fingerprint(config: Config) -> str:
    """Sha256 (64 hex digits) of the effective config as canonical JSON."""
    return hashlib.sha256(canonical_json(config.model_dump(mode="json"))).hexdigest()


def json_schema() -> dict[str, Any]:
    """JSON Schema of the config file; descriptions are the fields' docstrings."""
    schema = with_own_sections(Config.model_json_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def as_yaml(config: Config, origins: Origins | None = None) -> str:
    """The effective config as YAML that loads as the same config, each value followed by its origin if given."""
    lines = []
    for name, value in config:
        if name == "sources":
            lines += ["sources:" if value else "sources: []"]
            for source in value:
                fields = _section_lines(source, f"sources.{source.name}", origins)
                lines += [f"  {'- ' if number == 0 else '  '}{line}" for number, line in enumerate(fields)]
        elif dataclasses.is_dataclass(value):
            lines += _field_lines(name, value, name, origins)
        else:
            lines += _field_lines(name, value, name, origins)
    return "\n".join(lines)


def field_help(sections: Sequence[str]) -> list[FieldHelp]:
    """The fields of some sections (none = all), in order, with default and docstring."""
    schema = Config.model_json_schema()
    rows: list[FieldHelp] = []
    for section in sections or Config.model_fields:
        declared = schema["properties"][section]
        prefix = "sources.NAME" if section == "sources" else section
        rows += _help_of(prefix, declared.get("items", declared), schema["$defs"])
    return rows


def _help_of(path: str, declared: dict[str, Any], definitions: dict[str, Any]) -> Iterator[FieldHelp]:
    """A field, or all fields of the section that it is."""
    definition = declared.get("$ref", "").rpartition("/")[2]
    if definition:
        for name, field in definitions[definition]["properties"].items():
            yield from _help_of(f"{path}.{name}", field, definitions)
    else:
        default = dump_yaml(declared["default"]) if declared.get("default") is not None else ""
        yield FieldHelp(path, default, declared.get("description", ""))
        if "$ref" in declared.get("items", {}):
            yield from _help_of(f"{path}.N", declared["items"], definitions)


def sources_of(data: Sequence[str], dialect: str | None = None, repairs: str | None = None) -> list[dict[str, Any]]:
    """A source for each input of the command line, named by NAME=PATH or after the file or directory."""
    sources: list[dict[str, Any]] = []
    taken: set[str] = set()
    for argument in data:
        name, path = _name_and_path(argument)
        stem, number = name, 2
        while name in taken:
            name, number = f"{stem}-{number}", number + 1
        taken.add(name)
        given = {"dialect": dialect, "repairs": [name.strip() for name in repairs.split(",")] if repairs else None}
        sources.append({"name": name, "data": [path], **{key: value for key, value in given.items() if value}})
    return sources


def _name_and_path(argument: str) -> tuple[str, str]:
    named = re.fullmatch(r"([\w.-]+)=(.+)", argument)
    if named and not Path(argument).exists():
        return named[1], named[2]
    parts = [
        part
        for part in redacted(argument).removesuffix("?***").rstrip("/").split("/")
        if part and not set(part) & set("*?[")
    ]
    stem = parts[-1].partition(".")[0] if parts else ""
    return ("stdin" if argument == "-" else stem or "data"), argument


def _read(path: Path) -> tuple[dict[str, Any], TreeOrigins]:
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, _names_beside(path), n=1)
        hint = f" Did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise UsageError(f"no such config file: {str(path)!r}.{hint}", next_step=SHOW_COMMAND) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the config file {str(path)!r}: {error}") from error
    tree, lines = load_yaml(text, str(path))
    if tree is not None and not isinstance(tree, dict):
        message = f"{path}: got {quote(tree)}, expected a mapping of sections"
        raise UsageError(message, next_step=SHOW_COMMAND)
    return tree or {}, {key: f"{path}:{line}" for key, line in lines.items()}


def _names_beside(path: Path) -> list[str]:
    return [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []


def _validated(tree: dict[str, Any], origins: TreeOrigins) -> Config:
    checked = conformed(tree, Config, (), origins)
    try:
        config = Config.model_validate_json(json.dumps(checked))
    except ValidationError as error:
        raise _wrong_value(error, origins) from None
    for dotted, (least, greatest) in BOUNDS.items():
        path = tuple(dotted.split("."))
        value: Any = reduce(getattr, path, config)
        if value is not None and not least <= value <= greatest:
            expected = f"at least {least}" if greatest == inf else f"{least} to {greatest}"
            raise UsageError(f"{place_of(path, origins)}: got {value}, expected {expected}", next_step=SCHEMA_COMMAND)
    return config


def _wrong_value(error: ValidationError, origins: TreeOrigins) -> UsageError:
    """One line for the first of pydantic's errors."""
    first, *others = error.errors(include_url=False)
    path = tuple(str(key) for key in first["loc"])
    expected = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    found = "nothing" if first["type"] in {"missing", "missing_argument"} else quote(first["input"])
    if found == "nothing":
        expected = "a value"
    rest = f" ({len(others)} more like it)" if others else ""
    return UsageError(f"{place_of(path, origins)}: got {found}, expected {expected}{rest}", next_step=SCHEMA_COMMAND)


def _check_sources(config: Config, origins: TreeOrigins) -> None:
    """Names differ, and the sections that a source overrides hold."""
    seen: dict[str, int] = {}
    for number, source in enumerate(config.sources):
        place = place_of(("sources", str(number), "name"), origins)
        if not source.name or seen.setdefault(source.name, number) != number:
            message = f"{place}: got {quote(source.name)}, expected a name that no other source has"
            raise UsageError(message, next_step=SHOW_COMMAND)
        _check_mode(source, place_of(("sources", str(number), "mode"), origins))
        try:
            config.of(source)
        except UsageError as error:
            where = place_of(("sources", str(number)), origins)
            raise UsageError(f"{where}.{error.message}", next_step=error.next_step) from None
        if source.limit is not None and source.limit < 1:
            place = place_of(("sources", str(number), "limit"), origins)
            raise UsageError(f"{place}: got {source.limit}, expected at least 1", next_step=SCHEMA_COMMAND)


def _check_mode(source: options.Source, place: str) -> None:
    """A mode and a dialect say the same."""
    says_text = source.dialect == "text"
    if source.mode is not None and source.dialect != "auto" and says_text != (source.mode == "text"):
        fitting = "text or auto" if source.mode == "text" else "that of chats"
        message = f"{place}: got {source.mode} beside the dialect {source.dialect!r}, expected {fitting}"
        raise UsageError(message, next_step=SCHEMA_COMMAND)


def _check_columns(columns: Sequence[str], place: str) -> None:
    """A kept column stands beside those of the canonical table, under a name of its own."""
    if options.KEEP_ALL[0] in columns and len(columns) > 1:
        raise UsageError(f"{place}: got all beside names, expected one or the other", next_step=SCHEMA_COMMAND)
    for column in columns:
        if column in COLUMNS or columns.count(column) > 1:
            message = f"{place}: got {quote(column)}, expected names that differ and are none of {', '.join(COLUMNS)}"
            raise UsageError(message, next_step=SCHEMA_COMMAND)


def _origins_of_fields(config: Config, origins: TreeOrigins) -> Iterator[tuple[str, str]]:
    """The origin of each field; of a source's fields by the source's name."""
    for name, value in config:
        if name == "sources":
            for number, source in enumerate(value):
                yield from _origins_in(source, f"sources.{source.name}", ("sources", str(number)), origins)
        else:
            yield from _origins_in(value, name, (name,), origins)


def _origins_in(value: Any, name: str, path: KeyPath, origins: TreeOrigins) -> Iterator[tuple[str, str]]:
    """The origin of a field, or of all fields of the section that it is."""
    if dataclasses.is_dataclass(value):
        for key in _field_names(value):
            yield from _origins_in(getattr(value, key), f"{name}.{key}", (*path, key), origins)
    else:
        yield name, _origin(path, origins)


def _origin(path: KeyPath, origins: TreeOrigins) -> str:
    """The origin of a field: its own, or that of a value inside it; flags go first."""
    inside = [origin for known, origin in origins.items() if known[: len(path)] == path]
    if "flag" in inside:
        return "flag"
    if inside:
        return inside[0]
    return (
        "argument"
        if origins.get(path[:1]) == "argument" and path[-1] in {"name", "data", "dialect", "repairs"}
        else "default"
    )


def _field_names(section: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(section)]


def _section_lines(section: Any, path: str, origins: Origins | None) -> list[str]:
    fields = [(name, getattr(section, name)) for name in _field_names(section)]
    return [line for name, value in fields for line in _field_lines(name, value, f"{path}.{name}", origins)]


def _field_lines(name: str, value: Any, path: str, origins: Origins | None) -> list[str]:
    if dataclasses.is_dataclass(value):
        return [f"{name}:", *(f"  {line}" for line in _section_lines(value, path, origins))]
    line = f"{name}: {dump_yaml(_written(value))}"
    return [line if origins is None else f"{line}  # {origins[path]}"]


def _written(value: Any) -> Any:
    """A field's value as YAML has it: items of a list that are sections without what they leave as it is."""
    if not isinstance(value, tuple):
        return value
    return [_given(item) if dataclasses.is_dataclass(item) else item for item in value]


def _given(section: Any) -> dict[str, Any]:
    """The fields of a section that are not as they would be if left out."""
    fields = [(field, getattr(section, field.name)) for field in dataclasses.fields(section)]
    return {field.name: _written(value) for field, value in fields if value != _default(field)}


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
