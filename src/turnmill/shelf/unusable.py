"""A directory that is a problem, as a dataset whose rows can be looked at, though no job is given them."""

from __future__ import annotations

import dataclasses

from turnmill.errors import UsageError, quote
from turnmill.shelf.content import Content, copied, data_state, sha256_of
from turnmill.shelf.inside import directory_inside
from turnmill.shelf.scan import Dataset, Shelf, read_manifest
from turnmill.shelf.unpacked import require_unpacks_to


def unusable_dataset(shelf: Shelf, directory: str) -> Dataset:
    """The directory by its own name; nobody has counted its rows.

    Args:
        shelf: that it is in.
        directory: as a listing names it among its problems.

    Raises:
        UsageError: its manifest or its data file cannot be read, or is too large to be looked at.
        OSError: it is not there.
    """
    folder = directory_inside(shelf.directory, directory)
    manifest = dataclasses.replace(read_manifest(folder, "rows"), name=directory)  # which may be no dataset's name
    size = data_state(folder, manifest)[2]
    if size > shelf.max_bytes:
        raise UsageError(f"{quote(manifest.file)} has {size:,} bytes; expected at most {shelf.max_bytes:,}")
    if manifest.format == "parquet":
        with copied(folder, manifest) as path:  # another process reads it
            require_unpacks_to(path, shelf.max_bytes)
    content = Content(size, 0, sha256_of(folder, manifest), is_usable=False)
    return Dataset(folder, directory, manifest, content)
