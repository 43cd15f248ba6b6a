"""Make, list and revoke the access tokens of a service."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

from turnmill.cli.output import next_step, notice, write, write_json, write_table
from turnmill.cli.shelf_options import DATABASE, open_database, require_packages
from turnmill.errors import UsageError, quote, shell_word

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
MAX_DAYS = 36_500
JSON = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


@click.group()
def command() -> None:
    """Makes, lists and revokes the access tokens of a service; once one was made, nothing opens without one."""


@command.command()
@click.argument("name")
@click.option("--scope", default="read", show_default=True, metavar="read|write|admin", help="What it may do.")
@click.option("--expires", metavar="30d", help="After so many m, h, d or w; default: never.")
@DATABASE
def new(name: str, scope: str, expires: str | None, database: str) -> None:
    """Makes a token and prints it: it is never shown again, and only its hash is kept."""
    require_packages()
    from turnmill.shelf.access import make_token

    lasts = None if expires is None else _span(expires)
    write(make_token(open_database(database), name, scope, lasts))
    notice("sent as the header Authorization: Bearer TOKEN; it is not shown again")
    next_step(f"turnmill access-token revoke {shell_word(name)} --database {shell_word(database)}")


@command.command("list")
@DATABASE
@JSON
def list_command(database: str, as_json: bool) -> None:
    """Every token that was made, by name; none is shown."""
    require_packages()
    from turnmill.shelf.access import all_tokens

    columns = ("name", "scope", "created_at", "expires_at", "revoked_at", "last_used_at")
    tokens = [{name: getattr(token, name) for name in columns} for token in all_tokens(open_database(database))]
    if as_json:
        write_json([{name: _said(value) or None for name, value in token.items()} for token in tokens])
        return
    headings = ["token", "scope", "made", "expires", "revoked", "last used"]
    write_table(headings, [[_said(value) for value in token.values()] for token in tokens])


@command.command()
@click.argument("name")
@DATABASE
def revoke(name: str, database: str) -> None:
    """Lets a token open nothing from now on; a server that runs notices within a second."""
    require_packages()
    from turnmill.shelf.access import revoke_token

    revoke_token(open_database(database), name)
    write(f"{name} is revoked")


def _span(text: str) -> timedelta:
    """`90m`, `12h`, `30d`, `2w`.

    Raises:
        UsageError: something else.
    """
    found = re.fullmatch(r"([0-9]{1,6})([mhdw])", text)
    span = timedelta(**{UNITS[found[2]]: int(found[1])}) if found else timedelta(0)
    if not timedelta(0) < span <= timedelta(days=MAX_DAYS):
        raise UsageError(f"--expires {quote(text)}: expected a number and m, h, d or w", next_step="--expires 30d")
    return span


def _said(value: object) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value or "")
