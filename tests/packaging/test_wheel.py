"""What is built of this tree holds the page, and whoever installs it needs no Node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.ui
ROOT = Path(__file__).parents[2]
INDEX = "turnmill/server/static/index.html"
LEFT_OUT = shutil.ignore_patterns("node_modules", ".*", "__pycache__", "bench", "tests")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of this tree, with the bundle that was built in it."""
    assert (ROOT / "src" / INDEX).is_file(), "run `make ui` first"
    return Path(shutil.copytree(ROOT, tmp_path / "tree", ignore=LEFT_OUT))


def built(tree: Path, tmp_path: Path, path: str) -> tuple[Path, str]:
    """The wheel of a tree, and what was said while it was built with only the programs of a path."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--verbose", "--wheel-dir", tmp_path / "dist", tree]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PATH": path})
    return next((tmp_path / "dist").glob("*.whl")), done.stdout + done.stderr


def test_a_wheel_takes_the_bundle_along_without_node(tree: Path, tmp_path: Path) -> None:
    wheel, _ = built(tree, tmp_path, os.defpath)
    names = zipfile.ZipFile(wheel).namelist()
    assert INDEX in names
    assert any(name.startswith("turnmill/server/static/assets/") and name.endswith(".js") for name in names)


def test_without_a_bundle_or_npm_it_is_built_and_says_so(tree: Path, tmp_path: Path) -> None:
    shutil.rmtree(tree / "src" / "turnmill" / "server" / "static")
    wheel, said = built(tree, tmp_path, str(tmp_path))
    assert INDEX not in zipfile.ZipFile(wheel).namelist()
    assert "make ui" in said


def test_an_older_bundle_is_built_anew(tree: Path, tmp_path: Path) -> None:
    index = tree / "src" / INDEX
    os.utime(index, (0, 0))
    index.write_text("stale")
    os.utime(index, (0, 0))
    wheel, _ = built(tree, tmp_path, os.environ["PATH"])
    assert b"turnmill-api" in zipfile.ZipFile(wheel).read(INDEX)
