"""The documentation is true: its examples run, its reference is what the code says, its links lead somewhere."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import turnmill
from turnmill.codes import CODES

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCE = "\n".join(path.read_text("utf-8") for path in sorted(Path(turnmill.__file__).parent.rglob("*.py")))

MARKED = re.compile(
    r"<!-- runs(?:: exit (\d+))? -->\n```(sh|python)\n(.*?)\n```\n(?:\n```text\n(.*?)\n```)?", re.DOTALL
)


class Block(NamedTuple):
    """An example that is marked as one that runs, and what the page says comes of it."""

    exit_code: int
    language: str
    code: str
    shown: list[str]


def blocks(page: Path) -> list[Block]:
    found = MARKED.findall(page.read_text("utf-8"))
    return [Block(int(code or 0), language, text, shown.splitlines()) for code, language, text, shown in found]


def run(block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
    interpreter = {"sh": ["bash", "-e", "-c"], "python": [sys.executable, "-c"]}[block.language]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "120"}
    return subprocess.run([*interpreter, block.code], cwd=folder, env=environment, capture_output=True, text=True)


def test_marked_examples_run_and_say_what_is_shown(smollm2_directory: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for page in PAGES:  # the README comes first and writes the files that the others name
        for block in blocks(page):
            done = run(block, tmp_path)
            said = done.stdout + done.stderr
            assert done.returncode == block.exit_code, f"{page.name}: {block.code}\n{said}"
            assert set(block.shown) <= {line.rstrip() for line in said.splitlines()}, f"{page.name}: {said}"


def test_the_readme_has_examples() -> None:
    assert len(blocks(ROOT / "README.md")) >= 6


NAMED_AFTER = ("undeclared-column", "undeclared-key", "event-dropped", "call-without-result-dropped")
"""Counts that end with the name of what was counted."""

WRITER = runpy.run_path(str(ROOT / "docs" / "build_reference.py"))


@pytest.mark.parametrize("name", sorted(WRITER["PAGES"]))
def test_the_reference_is_what_the_code_says(name: str) -> None:
    assert (REFERENCE / name).read_text("utf-8") == WRITER["written"](name), "type `make docs`"


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_page_of_codes_is_complete(code: str) -> None:
    assert f"\n### `{code}`\n" in (REFERENCE / "codes.md").read_text("utf-8")


def test_every_code_that_is_raised_is_documented() -> None:
    raised = set(re.findall(r'\bRejected\(\s*"([a-z0-9-]+)"', SOURCE))
    assert len(raised) > 40
    assert raised <= set(CODES)


def test_every_count_is_documented() -> None:
    counted = set(re.findall(r'"((?:read|render|tokenize|fit)/[a-z-]+)"', SOURCE))
    listed = set(re.findall(r"`((?:read|render|tokenize|fit)/[a-z-]+)", (REFERENCE / "counts.md").read_text("utf-8")))
    assert counted <= listed
    assert listed - counted == {f"read/{name}" for name in NAMED_AFTER}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8"))
    assert [target for target in targets if "://" not in target and not (page.parent / target).exists()] == []
