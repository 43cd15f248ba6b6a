"""Pull a folder that was pushed to a dataset hub, at one commit, every file compared with its hash."""

from __future__ import annotations

from pathlib import Path

import click

from turnmill.cli.output import next_step, notice, progress, write, write_json


@click.command()
@click.argument("source", metavar="OWNER/NAME[@REVISION]")
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="The folder; replaced whole.")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def command(source: str, output: Path, as_json: bool) -> None:
    """Gets what `turnmill push` sent, and publishes it only where every file has the sha256 that its manifest lists.

    REVISION is a commit, a tag or a branch; a branch is taken at its commit, which is told. Exit 4 where a file is not
    what the manifest lists. Private repositories need a token (HF_TOKEN, or `hf auth login`).
    """
    from turnmill.files.hub import repository
    from turnmill.verbs.pull import next_command, pull

    with progress("files", unit="files") as advance:
        done = pull(repository(source), output, lambda *_: advance(1))
    if as_json:
        write_json(done.as_json())
    else:
        write(f"{output}: {done.files:,} files, {done.bytes:,} bytes of {done.repository}@{done.commit}")
    if not done.is_pinned:
        notice(f"to get the same again: {done.repository}@{done.commit}")
    next_step(next_command(done))
