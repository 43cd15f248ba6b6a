"""Puts the page into what is built: the bundle that lies in the source tree, or one that is made of `ui/` now."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUNDLE = Path("src", "turnmill", "server", "static")
SKIP = "TURNMILL_NO_PAGE"


class PageHook(BuildHookInterface[Any]):
    """Builds the page where `ui/` is newer than the bundle and there is an npm; an editable install never does.

    Whoever installs a released wheel or source archive needs no Node: both hold the bundle.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the bundle, where it is wanted and can be made, and take it along."""
        root = Path(self.root)
        if version != "editable" and not os.environ.get(SKIP) and is_stale(root):
            self._build(root / "ui")
        build_data["artifacts"].append(f"/{BUNDLE.as_posix()}")

    def _build(self, ui: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            self.app.display_warning("no npm: what is built holds no page; `make ui` builds it (Node 20 or newer)")
            return
        for command in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run([npm, *command], cwd=ui, check=True)


def is_stale(root: Path) -> bool:
    """Whether the sources of the page are there, and no bundle is that was made of them."""
    sources = [path for path in root.joinpath("ui").glob("*") if path.is_file()]
    sources += [path for path in root.joinpath("ui", "src").rglob("*") if path.is_file()]
    if not sources:
        return False
    index = root / BUNDLE / "index.html"
    return not index.is_file() or max(path.stat().st_mtime for path in sources) > index.stat().st_mtime
