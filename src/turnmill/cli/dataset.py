"""List, preview, add, validate, make and remove the datasets of a shelf."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, notice, write, write_json, write_table
from turnmill.cli.remote import TOKEN_FILE, Remote
from turnmill.errors import HealthError, UsageError, shell_word

if TYPE_CHECKING:
    from turnmill.cli.shelves import LocalShelf, RemoteShelf
    from turnmill.shelf.scan import Shelf

DEFAULT_SHELF = "datasets_training"
SHELF = click.option(
    "--shelf",
    "place",
    type=click.Path(path_type=Path),
    default=DEFAULT_SHELF,
    show_default=True,
    metavar="DIR",
    help="The directory of the datasets.",
)
SERVER = click.option(
    "--server", "--remote", metavar="URL", help="A server's shelf, with its prefix: http://localhost:8377/v1."
)
NAME = click.argument("name", metavar="NAME")
JSON = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


def _placed(function: Any) -> Any:
    """The options that say whose shelf: a directory's, or a server's."""
    for option in (TOKEN_FILE, SERVER, SHELF):
        function = option(function)
    return function


@click.group()
def command() -> None:
    """List, preview, add, validate, make and remove the datasets of a shelf: directories with a `dataset.toml` each."""


@command.command("list")
@_placed
@JSON
def list_command(as_json: bool, **where: Any) -> None:
    """Every dataset by name, and every directory whose manifest or data file cannot be used."""
    listing = _shelf(where).listing()
    if as_json:
        write_json(listing)
        return
    rows = [
        [found["name"], f"{found['num_records']:,}", _size(found["size_bytes"]), found["version"], found["description"]]
        for found in listing["datasets"]
    ]
    write_table(["dataset", "rows", "size", "version", "description"], rows)
    for problem in listing["problems"]:
        notice(f"problem: {problem['dir']}: {problem['error']}")
    if listing["problems"] and where["server"] is None:
        next_step(_command("validate", listing["problems"][0]["dir"], where))
    elif listing["datasets"]:
        next_step(_command("preview", listing["datasets"][0]["name"], where))
    elif where["server"] is None:
        next_step(_command("new", "NAME", where))
    else:
        next_step(_command("add", "FILE", where))


@command.command()
@NAME
@_placed
@JSON
def show(name: str, as_json: bool, **where: Any) -> None:
    """Everything that is known of one dataset: what its manifest says, its size, rows and hash."""
    dataset = _shelf(where).show(name)
    if as_json:
        write_json(dataset)
        return
    write_table(["what", "is"], [[key, _said(value)] for key, value in dataset.items() if value not in ("", None)])
    next_step(_command("preview", name, where))


@command.command()
@NAME
@click.option("--lines", "count", type=int, default=100, show_default=True, metavar="N", help="At most 1000.")
@_placed
@JSON
def preview(name: str, count: int, as_json: bool, **where: Any) -> None:
    """The first rows of one dataset."""
    found = _shelf(where).preview(name, count)
    if as_json:
        write_json(found)
        return
    for line in found["lines"]:
        write(line)
    notice(f"{len(found['lines']):,} of {found['num_records']:,} rows")


@command.command()
@click.argument("target", metavar="NAME|DIR")
@_placed
@JSON
def validate(target: str, as_json: bool, **where: Any) -> None:
    """Says every fault of a dataset, with its file and line; exit 3 where it cannot be used.

    The target is the name of a dataset or of a directory in the shelf, or the path of a directory with a manifest.
    Of a server's dataset, which can be used, it says the rows that would leave a run, and their codes.
    """
    if where["server"] is not None:
        _validate_remote(target, as_json, where)
        return
    from turnmill.cli.validated import fault_as_json, folder_of, validated

    folder, refusal = folder_of(target, where["place"])
    answer, faults = validated(folder, refusal)
    if as_json:
        write_json({**answer, "faults": [fault_as_json(fault) for fault in faults]})
    else:
        for fault in faults:
            write(str(fault))
        for note in answer["notes"]:
            notice(f"note: {note}")
    if not answer["usable"]:
        counted = f"{len(faults):,} fault" + ("" if len(faults) == 1 else "s")
        raise HealthError(f"{folder} is no dataset: {counted}", next_step=_command("validate", target, where))
    if not as_json:
        write(f"{answer['num_records']:,} rows: {answer['name']} can be used")


def _validate_remote(name: str, as_json: bool, where: dict[str, Any]) -> None:
    shelf = _shelf(where)
    problem = next((found for found in shelf.listing()["problems"] if found["dir"] == name), None)
    if problem is not None:
        raise HealthError(f"{name} is no dataset: {problem['error']}", next_step=_command("list", "", where))
    found = _remote_shelf(where).check(name)
    if as_json:
        write_json(found)
        return
    for fault in found["faults"]:
        write(f"line {fault['line']}: {fault['code']}: {fault['error']}")
    write(f"{found['accepted']:,} of {found['rows']:,} rows are sound: {name} can be used")


@command.command()
@NAME
@SHELF
def new(name: str, place: Path) -> None:
    """Makes a directory with a manifest to fill in; the data file goes beside it."""
    from turnmill.shelf.directory import make_dataset

    manifest = make_dataset(place, _directory(place).listing(), name)
    write(str(manifest))
    next_step(_command("validate", name, {"server": None, "place": place}))


@command.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE")
@click.option("--name", metavar="NAME", help="Of the dataset; the file's own without its ending where it is not given.")
@click.option("--dialect", metavar="DIALECT|auto", help="How its rows say a chat (turnmill list dialects).")
@_placed
@JSON
def add(file: Path, name: str | None, dialect: str | None, as_json: bool, **where: Any) -> None:
    """Copies a file onto the shelf as a dataset, or over the file of one; nothing of it is there unless it is valid."""
    from turnmill.shelf.upload import UploadRefused

    try:
        dataset = _shelf(where).add(file, name, dialect)
    except UploadRefused as error:
        for fault in error.faults:
            write(str(fault))
        raise
    if as_json:
        write_json(dataset)
        return
    write(f"{dataset['num_records']:,} rows: {dataset['name']} is on the shelf")
    next_step(_command("preview", dataset["name"], where))


@command.command()
@click.option("--database", "address", required=True, metavar="PATH|URL", help="SQLite's file, or postgresql://…")
@SHELF
@JSON
def sync(address: str, place: Path, as_json: bool) -> None:
    """Brings the records of a database up to date with the shelf, and says what changed."""
    from turnmill.shelf.database import Database
    from turnmill.shelf.records import Records

    listing = _directory(place).listing()
    database = Database(address)
    try:
        changes = Records(database).changes(listing)
    finally:
        database.close()
    if as_json:
        write_json({"datasets": len(listing.datasets), "changes": [change.as_json() for change in changes]})
        return
    for change in changes:
        write(f"{change.name}: {change.what}, {change.sha256[:12]}")
    notice(f"{len(listing.datasets):,} datasets, {len(changes):,} records changed")


@command.command()
@NAME
@click.option("--yes", is_flag=True, help="Remove it, with everything in its directory.")
@_placed
def remove(name: str, yes: bool, **where: Any) -> None:
    """Removes a dataset's directory, with everything in it; refuses unless told `--yes`."""
    shelf = _shelf(where)
    place = shelf.place_of(name)
    if not yes:
        raise UsageError(f"{place} would go, with everything in it; nothing was removed", next_step="--yes")
    shelf.remove(name)
    write(f"{place} is removed")


def _directory(place: Path) -> Shelf:
    from turnmill.shelf.scan import Shelf

    return Shelf(place)


def _shelf(where: dict[str, Any]) -> LocalShelf | RemoteShelf:
    from turnmill.cli.shelves import LocalShelf

    return LocalShelf(where["place"]) if where["server"] is None else _remote_shelf(where)


def _remote_shelf(where: dict[str, Any]) -> RemoteShelf:
    from turnmill.cli.shelves import RemoteShelf

    return RemoteShelf(Remote(where["server"], where["token_file"]))


def _command(verb: str, target: str, where: dict[str, Any]) -> str:
    if where["server"] is not None:
        named = f" --server {shell_word(where['server'])}"
    else:
        named = "" if str(where["place"]) == DEFAULT_SHELF else f" --shelf {shell_word(where['place'])}"
    return f"turnmill dataset {verb}{' ' if target else ''}{shell_word(target) if target else ''}{named}"


def _said(value: object) -> str:
    return ", ".join(f"{key}: {item}" for key, item in value.items()) if isinstance(value, dict) else str(value)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
