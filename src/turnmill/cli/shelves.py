"""The shelf that `turnmill dataset` speaks of: a directory of this machine, or a server's; said alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote as url_quote

from turnmill.cli.remote import Remote
from turnmill.errors import shell_word
from turnmill.shelf.content import first_lines
from turnmill.shelf.directory import directory_of, remove_directory
from turnmill.shelf.scan import Shelf
from turnmill.shelf.upload import UploadRefused, added

Answer = dict[str, Any]
DATASETS = "/training/datasets"


class LocalShelf:
    """A directory.

    Args:
        place: of the shelf.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._shelf = Shelf(place)

    def listing(self) -> Answer:
        """`datasets` by name, and `problems`."""
        return self._shelf.listing().as_json()

    def show(self, name: str) -> Answer:
        """One dataset."""
        return self._shelf.listing().dataset(name).as_json()

    def preview(self, name: str, count: int) -> Answer:
        """Its first rows."""
        dataset = self._shelf.listing().dataset(name)
        lines = first_lines(dataset.folder, dataset.manifest, count)
        records = dataset.content.num_records
        return {"name": name, "lines": lines, "num_records": records, "truncated": len(lines) < records}

    def add(self, file: Path, name: str | None, dialect: str | None) -> Answer:
        """Copy a file onto the shelf; gives the dataset.

        Raises:
            UploadRefused: it cannot be one.
        """
        try:
            dataset, _ = added(file, self._shelf, name, dialect)
        except UploadRefused as error:
            error.next_step = f"turnmill dataset list --shelf {shell_word(self._place)}"
            raise
        return dataset.as_json()

    def place_of(self, name: str) -> str:
        """What would go with a dataset."""
        return str(directory_of(self._place, self._shelf.listing(), name))

    def remove(self, name: str) -> None:
        """Remove its directory."""
        remove_directory(directory_of(self._place, self._shelf.listing(), name))


class RemoteShelf:
    """A server's shelf.

    Args:
        server: that has it.
    """

    def __init__(self, server: Remote) -> None:
        self._server = server

    def listing(self) -> Answer:
        """`datasets` by name, and `problems`."""
        found: Answer = self._server.get(DATASETS)
        return found

    def show(self, name: str) -> Answer:
        """One dataset."""
        found: Answer = self._server.get(_item(name))
        return found

    def preview(self, name: str, count: int) -> Answer:
        """Its first rows."""
        found: Answer = self._server.get(f"{DATASETS}/preview", name=name, lines=count)
        return found

    def add(self, file: Path, name: str | None, dialect: str | None) -> Answer:
        """Upload a file; gives the dataset."""
        named = {"filename": f"{name}{file.suffix}"} if name else {}
        told = {"dialect": dialect} if dialect else {}
        found: Answer = self._server.upload(DATASETS, file, {**named, **told})
        return found

    def check(self, name: str) -> Answer:
        """How many of its rows are sound, and what is wrong with the first others."""
        found: Answer = self._server.get(f"{_item(name)}/check")
        return found

    def place_of(self, name: str) -> str:
        """What would go with a dataset."""
        return f"{self.show(name)['name']} at {self._server.url}"

    def remove(self, name: str) -> None:
        """Remove it from the server's shelf."""
        self._server.delete(_item(name))


def _item(name: str) -> str:
    return f"{DATASETS}/by-name/{url_quote(name, safe='')}"
