"""Making and removing a dataset's directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from turnmill.errors import UsageError, quote, shell_word
from turnmill.files.disk import beside, sync_names, write_whole, writing
from turnmill.shelf.manifest import MANIFEST, checked_name
from turnmill.shelf.scan import Listing

SKELETON = """\
name = "{name}"
description = ""
format = "jsonl"           # or json, parquet
file = "{name}.jsonl"
version = "1"
# generator = "generate.py"     # the script here that writes `file`
# licence = "cc-by-4.0"
# dialect = "openai"            # rows that are not instruction, input and output (turnmill list dialects)
# splits = {{ eval = 0.05 }}      # share, or number, of rows held out
"""


def make_dataset(shelf: Path, listing: Listing, name: str) -> Path:
    """Make a directory with a manifest to fill in; gives the manifest's path.

    Args:
        shelf: made, too, where it is not there.
        listing: of the shelf.
        name: of the dataset and its directory.

    Raises:
        UsageError: no dataset can have the name, it is taken, or the place cannot be written.
    """
    folder = shelf / checked_name(name)
    if any(dataset.manifest.name == name for dataset in listing.datasets) or os.path.lexists(folder):
        what = f"{quote(name)} is taken; expected a name that no dataset and no directory of {shelf} has"
        raise UsageError(what, next_step=f"turnmill dataset list --shelf {shell_word(shelf)}")
    manifest = folder / MANIFEST
    with writing(folder):
        folder.mkdir(parents=True)
        draft = beside(manifest, "draft")
        try:
            write_whole(draft, SKELETON.format(name=name).encode())
            draft.rename(manifest)
        except BaseException:  # a name without a manifest would be taken, and by nothing
            draft.unlink(missing_ok=True)
            folder.rmdir()
            raise
        sync_names(folder)
    return manifest


def directory_of(shelf: Path, listing: Listing, name: str) -> Path:
    """Where a dataset, or a directory that is a problem, stands in the shelf.

    Raises:
        UsageError: the name is of neither.
    """
    if any(problem.dir == name for problem in listing.problems) and os.path.lexists(shelf / name):
        return shelf / name
    return shelf / listing.dataset(name).dir


def remove_directory(folder: Path) -> None:
    """Remove a dataset's directory with everything in it; of a link only the link. It is gone at once or stays.

    Raises:
        UsageError: the place cannot be written.
    """
    with writing(folder):
        if folder.is_symlink():
            folder.unlink()
            return
        leaving = beside(folder, "removed")
        shutil.rmtree(leaving, ignore_errors=True)
        folder.rename(leaving)
        shutil.rmtree(leaving)
