"""Push a prepared or exported folder to a dataset hub, with a card, in one commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from turnmill.cli.output import next_step, notice, write, write_json
from turnmill.errors import UsageError


@click.command()
@click.argument("folder", metavar="OUT", type=click.Path(path_type=Path))
@click.argument("target", metavar="OWNER/NAME[@BRANCH]")
@click.option("--license", "licence", metavar="ID", help="Of the data: `apache-2.0`, `cc-by-4.0`, `other`.")
@click.option("--no-license", is_flag=True, help="Push without one: the card says that none is stated.")
@click.option("--no-quarantine", is_flag=True, help="Leave out the rows that left, and what the report quotes of them.")
@click.option("--public", is_flag=True, help="A new repository is public; push to a public one.")
@click.option("--message", help="Of the commit.")
@click.option("--dry-run", is_flag=True, help="Show the card and what would be sent; ask nobody.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def command(folder: Path, target: str, public: bool, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Sends every file that the manifest of OUT lists, the manifest, and a card with provenance, counts and masks.

    A new repository is private. The commit is there whole, or the repository is as it was; a push that was stopped is
    run again, and what was sent is not sent twice. The token comes from HF_TOKEN or `hf auth login`.
    """
    from turnmill.files.hub import command_to_pull, repository
    from turnmill.verbs.push import Licence, push, would_push

    to = repository(target)
    said, left = Licence(options["licence"], options["no_license"]), not options["no_quarantine"]
    if said.identifier and said.is_waived:
        raise UsageError("--license and --no-license exclude each other", next_step="turnmill push --help")
    if dry_run:
        sent, text = would_push(folder, to, said, left=left)
        write(text)
        notice(f"{len(sent.contents) + 1:,} files, {sent.bytes:,} bytes would go to {to}")
        _say_left(sent.left_rows)
        return
    done = push(folder, to, said, left=left, public=public, message=options["message"])
    if as_json:
        write_json(done.as_json())
    else:
        seen = "private" if done.is_private else "public"
        write(f"{done.repository}@{done.commit}: {done.files:,} files, {done.bytes:,} bytes, {seen}")
    _say_left(done.left_rows)
    if done.deleted:
        notice(f"{done.deleted:,} files of an earlier push were removed")
    if done.is_card_kept:
        notice("the card there was edited by somebody, and stays as it is")
    next_step(command_to_pull(done.repository, done.commit))


def _say_left(rows: int) -> None:
    if rows:
        notice(f"{rows:,} rows that were left out are among them (--no-quarantine keeps them here)")
