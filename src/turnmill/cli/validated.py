"""What `turnmill dataset validate` finds out of a dataset on this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from turnmill.errors import UnknownName, UsageError, shell_word
from turnmill.shelf.content import Fault, examine
from turnmill.shelf.inside import directory_inside
from turnmill.shelf.manifest import MANIFEST, notes_of
from turnmill.shelf.scan import Shelf, read_manifest, shown


def folder_of(target: str, place: Path) -> tuple[Path, str | None]:
    """The directory of a dataset by name, of a directory of the shelf, or by path; and why the shelf refuses it."""
    listing = Shelf(place).listing()
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


def validated(folder: Path, refusal: str | None) -> tuple[dict[str, Any], list[Fault]]:
    """What the answer says beside the faults, and the faults: that of the shelf only where no other is found."""
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


def fault_as_json(fault: Fault) -> dict[str, Any]:
    """A fault as the answer says it."""
    return {"file": fault.file, "line": fault.line or None, "error": fault.error}
