"""Serve training: takes a dataset with each job, prepares it, and trains a model on it."""

from __future__ import annotations

from pathlib import Path

import click

from turnmill.cli.output import notice
from turnmill.cli.shelf_options import named_models, require_packages
from turnmill.errors import UsageError

DEFAULT_PORT = 8766


@click.command()
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="The sidecar's own directory.")
@click.option("--models", multiple=True, metavar="NAME=DIR", help="A model that jobs can name; once for each.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Another one needs a secret.")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: a free one.")
@click.option(
    "--concurrent", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Runs at once; others wait."
)
@click.option(
    "--secret-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What requests bring as bearer token; else $TURNMILL_SIDECAR_SECRET.",
)
@click.option(
    "--max-bytes", type=click.IntRange(1), default=64 << 20, show_default=True, metavar="N", help="Of a dataset."
)
def command(
    data: Path | None,
    models: tuple[str, ...],
    host: str,
    port: int,
    concurrent: int,
    secret_file: Path | None,
    max_bytes: int,
) -> None:
    """Serves the training of models on this machine until SIGTERM; runs that work then go on at the next start.

    A job carries its dataset along and is kept in DIR with all that becomes of it. The line on stderr that begins with
    `sidecar on` says where it answers.
    """
    if data is None:
        raise UsageError("no data directory given", next_step="--data sidecar")
    if not models:
        raise UsageError("no model given: expected one that jobs can name", next_step="--models NAME=DIR")
    named = named_models(models)
    require_packages()
    from turnmill.http_service import bound
    from turnmill.sidecar.app import create_app
    from turnmill.sidecar.guard import read_secret, require_secret
    from turnmill.sidecar.service import Settings
    from turnmill.sidecar.serving import serve

    secret = read_secret(secret_file)
    require_secret(host, secret)
    with bound(host, port) as place:
        serve(create_app(Settings(data, named, concurrent, max_bytes), secret, host), place, notice)
