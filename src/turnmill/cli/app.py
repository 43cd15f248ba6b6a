"""`turnmill`: finds the verb, runs it, and says what went wrong."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from turnmill import cli
from turnmill.errors import TurnmillError, UnknownName

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


class Verbs(click.Group):
    """The modules of `turnmill.cli` that define `command`; none is imported before it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all verbs, sorted."""
        return sorted(_summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of that name, imported."""
        if cmd_name not in _summaries():
            raise UnknownName("command", cmd_name, _summaries(), next_step="turnmill --help")
        command: click.Command = importlib.import_module(f"{cli.__name__}.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the verbs with the first line of each module's docstring."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_summaries().items()))


def _summaries() -> dict[str, str]:
    """Verb → first line of its module's docstring, read from the files."""
    summaries = {}
    for module in pkgutil.iter_modules(cli.__path__):
        tree = ast.parse(Path(cli.__path__[0], f"{module.name}.py").read_bytes())
        if any(isinstance(node, ast.FunctionDef) and node.name == "command" for node in tree.body):
            summary = (ast.get_docstring(tree) or "").partition("\n")[0]
            summaries[module.name.replace("_", "-")] = summary
    return summaries


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="turnmill", prog_name="turnmill", message="%(prog)s %(version)s")
def verbs() -> None:
    """Turns chat data in any dialect into training data a language model can be trusted to learn from."""


def main() -> NoReturn:
    """Entry point of the `turnmill` command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line; gives its exit code. A bug keeps its traceback."""
    try:
        result = verbs.main(args=list(arguments), prog_name="turnmill", standalone_mode=False)
        sys.stdout.flush()
    except TurnmillError as error:
        return _fail(str(error), whole_command(error.next_step, arguments), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "turnmill"
        return _fail(error.format_message(), f"{path} --help", error.exit_code)
    except click.ClickException as error:
        return _fail(error.format_message(), None, error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", None, INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away: nothing is left to say, not even when the interpreter flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return result if isinstance(result, int) else 0


def whole_command(next_step: str | None, arguments: Sequence[str]) -> str | None:
    """The next command; where the error only knows a flag, this command line with that flag."""
    if next_step is None or not next_step.startswith("--"):
        return next_step
    flag = next_step.partition(" ")[0]
    return f"turnmill {shlex.join(_without(flag, arguments))} {next_step}"


def _without(flag: str, arguments: Sequence[str]) -> list[str]:
    """The arguments without a flag and its value."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        is_value = place > 0 and arguments[place - 1] == flag
        if not (is_value or argument == flag or argument.startswith(f"{flag}=")):
            kept.append(argument)
    return kept


def _fail(message: str, next_step: str | None, exit_code: int) -> int:
    click.echo(f"turnmill: {message}", err=True)
    if next_step:
        click.echo(next_step, err=True)
    return exit_code
