"""Print the completion script of a shell: bash, zsh or fish."""

from __future__ import annotations

import click

from turnmill.cli.output import next_step, write
from turnmill.errors import UnknownName

VARIABLE = "_TURNMILL_COMPLETE"
SHELLS = {
    "bash": 'eval "$(turnmill completion bash)"',
    "fish": "turnmill completion fish | source",
    "zsh": 'eval "$(turnmill completion zsh)"',
}
"""Shell → the line of its start-up file that loads the script."""


@click.command()
@click.argument("shell")
def command(shell: str) -> None:
    """The script that makes SHELL complete verbs, options and file names; the line to put into its start-up file."""
    from click.shell_completion import get_completion_class

    from turnmill.cli.app import verbs

    found = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        raise UnknownName("shell", shell, SHELLS, next_step="turnmill completion bash")
    write(found(verbs, {}, "turnmill", VARIABLE).source())
    next_step(SHELLS[shell])
