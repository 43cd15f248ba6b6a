"""What of a folder is sent to others: all that its manifest lists, or that without the rows that were left out."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from turnmill.files.inventory import MANIFEST, json_file
from turnmill.report.census_page import census_page

LEFT = ("quarantine/", "duplicates/")


class Sent(NamedTuple):
    """Files, and the manifest that lists them."""

    manifest: dict[str, Any]
    contents: dict[str, Path | bytes]
    """Path → file or bytes, the manifest among them."""

    @property
    def bytes(self) -> int:
        """Of all files but the manifest."""
        return sum(entry["bytes"] for entry in self.manifest["files"])

    @property
    def left_rows(self) -> int:
        """Rows among them that were left out of the training data."""
        return sum(entry["rows"] or 0 for entry in self.manifest["files"] if entry["path"].startswith(LEFT))


def whole(folder: Path, manifest: dict[str, Any]) -> Sent:
    """All that the manifest lists."""
    contents: dict[str, Path | bytes] = {entry["path"]: folder / entry["path"] for entry in manifest["files"]}
    return Sent(manifest, {**contents, MANIFEST: folder / MANIFEST})


def without_left(folder: Path, manifest: dict[str, Any]) -> Sent:
    """A prepared folder without quarantine and duplicates, and a report that quotes none of them."""
    report = {**json.loads((folder / "report.json").read_bytes()), "left_rows": [], "show_left": ""}
    changed = {"report.json": json_file(report), "report.html": census_page(report).encode("utf-8")}
    entries = [entry for entry in manifest["files"] if not entry["path"].startswith(LEFT)]
    listed = [
        {**entry, "sha256": hashlib.sha256(changed[entry["path"]]).hexdigest(), "bytes": len(changed[entry["path"]])}
        if entry["path"] in changed
        else entry
        for entry in entries
    ]
    kept = {**manifest, "files": listed}
    contents: dict[str, Path | bytes] = {entry["path"]: folder / entry["path"] for entry in entries}
    return Sent(kept, {**contents, **changed, MANIFEST: json_file(kept)})
