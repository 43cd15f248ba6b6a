"""What verbs share on the command line: `[CONFIG.yaml | DATA...] [--section.field VALUE]... [--json]`."""

from __future__ import annotations

import dataclasses
import functools
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from turnmill.errors import UsageError, shell_word

if TYPE_CHECKING:
    from turnmill.config import Config, Origins
    from turnmill.options import Source

CONFIG_SUFFIXES = (".yaml", ".yml")
"""A first argument that ends so is the config, any other is data."""

TOP_FIELDS = ("seed", "limit", "workers", "executor")
OVERRIDES = "turnmill.overrides"
"""Key of `Context.meta`: dotted path and value of each flag, in order."""
TYPED = "turnmill.typed"
"""Key of `Context.meta`: what stood behind the verb, as typed."""


class Shorthand(NamedTuple):
    """A short option for one field."""

    flag: str
    path: str
    metavar: str
    is_list: bool = False
    """Its value is names with commas between."""
    is_file: bool = False
    """Its value is a YAML file that holds the field: its list, or a mapping with it alone."""

    def value(self, typed: str) -> str:
        """What was typed, as the field takes it."""
        from turnmill.yaml_values import dump_yaml

        if self.is_file:
            return dump_yaml(self._read(typed))
        return dump_yaml([name.strip() for name in typed.split(",")]) if self.is_list else typed

    def _read(self, name: str) -> Any:
        from turnmill.yaml_values import load_yaml

        try:
            text = Path(name).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as problem:
            raise UsageError(f"cannot read {name!r}: {problem}", next_step=f"ls {shell_word(name)}") from problem
        found, _ = load_yaml(text, name)
        held = found.get(self.path) if isinstance(found, dict) and found.keys() == {self.path} else found
        if not isinstance(held, list):
            what = f"{name}: expected a list of {self.path}, or a mapping with `{self.path}` alone"
            raise UsageError(what, next_step="turnmill config schema")
        return held

    @property
    def help(self) -> str:
        """Its line of `--help`."""
        if self.is_file:
            return f"A YAML file with the list of {self.path}, in place of the config's."
        return f"Same as --{self.path}{', with commas between' if self.is_list else ''}."

    @property
    def section(self) -> str:
        """The section, or the top field, that it sets."""
        return self.path.partition(".")[0]


SHORTHANDS = (
    Shorthand("--model", "model.name_or_path", "DIR|smollm2"),
    Shorthand("--template", "model.template", "FILE|NAME"),
    Shorthand("--special-tokens", "model.special_tokens", "JSON"),
    Shorthand("--max-tokens", "fit.max_tokens", "N"),
    Shorthand("--sources", "sources", "FILE", is_file=True),
    Shorthand("--keep-columns", "read.keep_columns", "NAMES|all", is_list=True),
    Shorthand("--against", "decontaminate.against", "FILES", is_list=True),
    Shorthand("--samples", "evaluate.samples", "N"),
    Shorthand("--limit", "limit", "N"),
    Shorthand("--seed", "seed", "N"),
    Shorthand("--workers", "workers", "N"),
    Shorthand("--executor", "executor", "NAME"),
)


@dataclass(frozen=True)
class Invocation:
    """What stood on the command line."""

    config: Config
    origins: Origins
    """Dotted path of each field → where its value comes from."""
    arguments: tuple[str, ...]
    """The positional arguments as typed, the trailing ones left out."""
    trailing: tuple[str, ...]
    """The values of the verb's own last arguments (`explain DATA ROW`)."""
    json: bool
    dialect: str | None = None
    """`--dialect` as typed."""
    repairs: str | None = None
    """`--repairs` as typed."""

    @property
    def data(self) -> str:
        """The data, their dialect and repairs as words of a command line."""
        typed = (("--dialect", self.dialect), ("--repairs", self.repairs))
        return shlex.join([*self.arguments, *(word for flag, value in typed if value for word in (flag, value))])

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources, at least one.

        Raises:
            UsageError: neither data nor a config with sources was given.
        """
        if not self.config.sources:
            path = click.get_current_context().command_path
            raise UsageError("no data given: expected DATA, or a config with sources", next_step=f"{path} --help")
        return self.config.sources


class ConfiguredCommand(click.Command):
    """A command that takes `--section.field VALUE` for every field of the config."""

    sections: tuple[str, ...] = ()
    """Whose fields `--help` lists; none = all."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Takes the dotted flags out, then parses as click does."""
        ctx.meta[TYPED] = tuple(args)
        rest, overrides = split_overrides(args)
        ctx.meta[OVERRIDES] = overrides
        return super().parse_args(ctx, rest)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the fields of the sections that the verb uses, after its own options."""
        from turnmill.config import field_help

        super().format_options(ctx, formatter)
        with formatter.section("Fields (here or in CONFIG.yaml; `turnmill config schema` has all)"):
            rows = [(f"--{row.path}", _described(row.text, row.default)) for row in field_help(self.sections)]
            formatter.write_dl(rows)


def split_overrides(args: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The arguments without dotted flags, and the dotted flags as (path, value)."""
    rest: list[str] = []
    overrides: list[tuple[str, str]] = []
    waiting = iter(args)
    for argument in waiting:
        if argument == "--":
            rest += [argument, *waiting]
        elif argument.startswith("--") and "." in argument.partition("=")[0]:
            flag, equals, value = argument.partition("=")
            if not equals:
                value = next(waiting, "--")
                if value.startswith("--"):
                    raise UsageError(f"{flag} needs a value", next_step="turnmill config schema")
            overrides.append((flag.removeprefix("--"), value))
        else:
            rest.append(argument)
    return rest, overrides


def configured(
    *sections: str, trailing: Sequence[str] = (), operand: str | None = None
) -> Callable[[Callable[..., Any]], ConfiguredCommand]:
    """Makes a command of a function whose first parameter is an `Invocation`.

    Args:
        sections: the config sections that the verb uses, for `--help` and the short options; none = all. A dotted
            flag of another section is accepted: one config serves every verb.
        trailing: names of arguments that stand after the data, and are required.
        operand: name of what stands behind the config in place of data, once or not at all; it is in `trailing`.
    """

    def decorate(function: Callable[..., Any]) -> ConfiguredCommand:
        @functools.wraps(function)
        def callback(arguments: tuple[str, ...], json: bool, **options: Any) -> Any:
            typed = [(item, options.pop(_parameter(item), None)) for item in SHORTHANDS]
            flags = [(item.path, item.value(value)) for item, value in typed if value is not None]
            manner = {name: options.pop(name) for name in ("dialect", "repairs")}
            if operand is not None:
                return function(dataclasses.replace(_of_operand(arguments, operand, flags, json), **manner), **options)
            return function(_invocation(arguments, trailing, flags, manner, json), **options)

        usage = " ".join(["[CONFIG.yaml | DATA...]", *trailing]) if operand is None else f"[CONFIG.yaml] [{operand}]"
        command = click.command(cls=ConfiguredCommand, options_metavar="[OPTIONS] [--section.field VALUE]...")(callback)
        command.sections = (*TOP_FIELDS, *sections) if sections else ()
        command.params = [click.Argument(["arguments"], nargs=-1, metavar=usage), *command.params, *_shared(sections)]
        return command

    return decorate


def _invocation(
    arguments: tuple[str, ...],
    trailing: Sequence[str],
    shorthands: list[tuple[str, str]],
    manner: dict[str, str | None],
    json: bool,
) -> Invocation:
    from turnmill.config import load

    overrides = [*click.get_current_context().meta[OVERRIDES], *shorthands]
    last = len(arguments) - len(trailing)
    if last < 0:
        path = click.get_current_context().command_path
        raise UsageError(f"{path} needs {' '.join(trailing)} after the data", next_step=f"{path} --help")
    file, data = _config_and_data(arguments[:last])
    config, origins = load(file, overrides, data, **manner)
    return Invocation(config, origins, arguments[:last], arguments[last:], json, **manner)


def _of_operand(arguments: tuple[str, ...], operand: str, shorthands: list[tuple[str, str]], json: bool) -> Invocation:
    from turnmill.config import load

    file, rest = _config_and_data(arguments)
    if len(rest) > 1:
        path = click.get_current_context().command_path
        what = f"{path} takes one {operand}; got {' '.join(map(shell_word, rest))}"
        raise UsageError(what, next_step=f"{path} --help")
    config, origins = load(file, [*click.get_current_context().meta[OVERRIDES], *shorthands])
    return Invocation(config, origins, arguments[: len(arguments) - len(rest)], rest, json)


def _config_and_data(arguments: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    if arguments and arguments[0].endswith(CONFIG_SUFFIXES):
        return arguments[0], arguments[1:]
    return None, arguments


def _shared(sections: Sequence[str]) -> list[click.Parameter]:
    offered = [item for item in SHORTHANDS if not sections or item.section in (*TOP_FIELDS, *sections)]
    options: list[click.Parameter] = [
        click.Option([item.flag], metavar=item.metavar, help=item.help) for item in offered
    ]
    hidden = bool(sections) and "sources" not in sections
    options.append(click.Option(["--dialect"], metavar="NAME", hidden=hidden, help="Dialect of DATA; default: detect."))
    repairs = "Repairs of DATA, with commas between; default: none."
    options.append(click.Option(["--repairs"], metavar="NAMES", hidden=hidden, help=repairs))
    options.append(click.Option(["--json"], is_flag=True, help="Answer in JSON."))
    return options


def _parameter(shorthand: Shorthand) -> str:
    return shorthand.flag.removeprefix("--").replace("-", "_")


def _described(text: str, default: str) -> str:
    return f"{text} [{default}]".strip() if default else text
