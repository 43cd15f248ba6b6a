"""List, preview, add, validate, make and remove the datasets of a shelf."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from turnmill.cli.output import next_step, notice, write, write_json, write_table
from turnmill.errors import HealthError, UnknownName, UsageError, shell_word

if TYPE_CHECKING:
    from turnmill.shelf.content import Fault
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
NAME = click.argument("name", metavar="NAME")
JSON = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


@click.group()
def command() -> None:
    """List, preview, add, validate, make and remove the datasets of a shelf: directories with a `dataset.toml` each."""


@command.command("list")
@SHELF
@JSON
def list_command(place: Path, as_json: bool) -> None:
    """Every dataset by name, and every directory whose manifest or data file cannot be used."""
    listing = _shelf(place).listing()
    if as_json:
        write_json(listing.as_json())
        return
    rows = [
        [found["name"], f"{found['num_records']:,}", _size(found["size_bytes"]), found["version"], found["description"]]
        for found in listing.as_json()["datasets"]
    ]
    write_table(["dataset", "rows", "size", "version", "description"], rows)
    for problem in listing.problems:
        notice(f"problem: {problem.dir}: {problem.error}")
    if listing.problems:
        next_step(_command("validate", listing.problems[0].dir, place))
    elif listing.datasets:
        next_step(_command("preview", listing.datasets[0].manifest.name, place))
    else:
        next_step(_command("new", "NAME", place))


@command.command()
@NAME
@SHELF
@JSON
def show(name: str, place: Path, as_json: bool) -> None:
    """Everything that is known of one dataset: what its manifest says, its size, rows and hash."""
    dataset = _shelf(place).listing().dataset(name)
    if as_json:
        write_json(dataset.as_json())
        return
    write_table(["what", "is"], [[key, _said(value)] for key, value in dataset.as_json().items() if value != ""])
    next_step(_command("preview", name, place))


@command.command()
@NAME
@click.option("--lines", "count", type=int, default=100, show_default=True, metavar="N", help="At most 1000.")
@SHELF
@JSON
def preview(name: str, count: int, place: Path, as_json: bool) -> None:
    """The first rows of one dataset."""
    from turnmill.shelf.content import first_lines

    dataset = _shelf(place).listing().dataset(name)
    lines = first_lines(dataset.folder, dataset.manifest, count)
    records = dataset.content.num_records
    if as_json:
        write_json({"name": name, "lines": lines, "num_records": records, "truncated": len(lines) < records})
        return
    for line in lines:
        write(line)
    notice(f"{len(lines):,} of {records:,} rows")


@command.command()
@click.argument("target", metavar="NAME|DIR")
@SHELF
@JSON
def validate(target: str, place: Path, as_json: bool) -> None:
    """Says every fault of a dataset, with its file and line; exit 3 where it cannot be used.

    The target is the name of a dataset or of a directory in the shelf, or the path of a directory with a manifest.
    """
    folder, refusal = _folder_of(target, place)
    answer, faults = _validated(folder, refusal)
    if as_json:
        write_json({**answer, "faults": [_as_json(fault) for fault in faults]})
    else:
        for fault in faults:
            write(str(fault))
        for note in answer["notes"]:
            notice(f"note: {note}")
    if not answer["usable"]:
        counted = f"{len(faults):,} fault" + ("" if len(faults) == 1 else "s")
        raise HealthError(f"{folder} is no dataset: {counted}", next_step=_command("validate", target, place))
    if not as_json:
        write(f"{answer['num_records']:,} rows: {answer['name']} can be used")


@command.command()
@NAME
@SHELF
def new(name: str, place: Path) -> None:
    """Makes a directory with a manifest to fill in; the data file goes beside it."""
    from turnmill.shelf.directory import make_dataset

    manifest = make_dataset(place, _shelf(place).listing(), name)
    write(str(manifest))
    next_step(_command("validate", name, place))


@command.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True), metavar="FILE")
@click.option("--name", metavar="NAME", help="Of the dataset; the file's own without its ending where it is not given.")
@click.option("--dialect", metavar="DIALECT|auto", help="How its rows say a chat (turnmill list dialects).")
@SHELF
@JSON
def add(file: Path, name: str | None, dialect: str | None, place: Path, as_json: bool) -> None:
    """Copies a file onto the shelf as a dataset, or over the file of one; nothing of it is there unless it is valid."""
    from turnmill.shelf.upload import UploadRefused, added

    try:
        dataset, is_new = added(file, _shelf(place), name, dialect)
    except UploadRefused as error:
        for fault in error.faults:
            write(str(fault))
        error.next_step = f"turnmill dataset list --shelf {shell_word(place)}"
        raise
    if as_json:
        write_json(dataset.as_json())
        return
    write(f"{dataset.content.num_records:,} rows: {dataset.manifest.name} {'is added' if is_new else 'is replaced'}")
    next_step(_command("preview", dataset.manifest.name, place))


@command.command()
@click.option("--database", "address", required=True, metavar="PATH|URL", help="SQLite's file, or postgresql://…")
@SHELF
@JSON
def sync(address: str, place: Path, as_json: bool) -> None:
    """Brings the records of a database up to date with the shelf, and says what changed."""
    from turnmill.shelf.database import Database
    from turnmill.shelf.records import Records

    listing = _shelf(place).listing()
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
@SHELF
def remove(name: str, yes: bool, place: Path) -> None:
    """Removes a dataset's directory, with everything in it; refuses unless told `--yes`."""
    from turnmill.shelf.directory import directory_of, remove_directory

    folder = directory_of(place, _shelf(place).listing(), name)
    if not yes:
        raise UsageError(f"{folder} would go, with everything in it; nothing was removed", next_step="--yes")
    remove_directory(folder)
    write(f"{folder} is removed")


def _shelf(place: Path) -> Shelf:
    from turnmill.shelf.scan import Shelf

    return Shelf(place)


def _folder_of(target: str, place: Path) -> tuple[Path, str | None]:
    """The directory of a dataset by name, of a directory of the shelf, or by path; and why the shelf refuses it."""
    from turnmill.shelf.inside import directory_inside
    from turnmill.shelf.manifest import MANIFEST

    listing = _shelf(place).listing()
    for dataset in listing.datasets:
        if dataset.manifest.name == target:
            return dataset.folder, None
    refusal = next((problem.error for problem in listing.problems if problem.dir == target), None)
    if refusal is not None:
        try:
            return directory_inside(place, target), refusal
        except OSError as error:
            raise UsageError(f"cannot look at {place / target}: {error.strerror}") from None
    if Path(target).is_dir():
        if not (Path(target) / MANIFEST).exists():
            what = f"{target} has no {MANIFEST}; expected a dataset's directory"
            raise UsageError(what, next_step=f"ls -a {shell_word(target)}")
        return Path(target).resolve(), None
    known = [dataset.manifest.name for dataset in listing.datasets] + [problem.dir for problem in listing.problems]
    raise UnknownName("dataset", target, known, next_step=f"turnmill dataset list --shelf {shell_word(place)}")


def _validated(folder: Path, refusal: str | None) -> tuple[dict[str, Any], list[Fault]]:
    """What the answer says beside the faults, and the faults: that of the shelf only where no other is found."""
    from turnmill.shelf.content import Fault, examine
    from turnmill.shelf.manifest import MANIFEST, notes_of
    from turnmill.shelf.scan import read_manifest, shown

    faults: list[Fault] = []
    answer: dict[str, Any] = {"dir": shown(folder.name), "name": None, "usable": False, "num_records": 0, "notes": []}
    try:
        manifest = read_manifest(folder, folder.name)
    except UsageError as error:
        return answer, [Fault(MANIFEST, _line_of(error.message), error.message)]
    answer.update(name=manifest.name, notes=notes_of(manifest))
    try:
        content = examine(folder, manifest, on_fault=faults.append)
    except UsageError as error:
        return answer, [Fault(MANIFEST, 0, error.message)]
    if content.is_usable and refusal is not None:
        faults.append(Fault(MANIFEST, 0, refusal))
    answer.update(usable=content.is_usable and refusal is None, num_records=content.num_records)
    return answer, faults


def _line_of(message: str) -> int:
    """The line that the TOML reader names."""
    found = re.search(r"at line (\d+)", message)
    return int(found[1]) if found else 0


def _as_json(fault: Fault) -> dict[str, Any]:
    return {"file": fault.file, "line": fault.line or None, "error": fault.error}


def _command(verb: str, target: str, place: Path) -> str:
    shelf = "" if str(place) == DEFAULT_SHELF else f" --shelf {shell_word(place)}"
    return f"turnmill dataset {verb} {shell_word(target)}{shelf}"


def _said(value: object) -> str:
    return ", ".join(f"{key}: {item}" for key, item in value.items()) if isinstance(value, dict) else str(value)


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
