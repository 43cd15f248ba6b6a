from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(("name", "rows"), [("tools.json", 16), ("instructions.json", 20)])
def test_arrays_hold_the_rows_the_readme_counts(name: str, rows: int) -> None:
    assert len(json.loads((EXAMPLES / name).read_text("utf-8"))) == rows
    assert f"`{name}`" in (EXAMPLES / "README.md").read_text("utf-8")


@pytest.mark.parametrize(("name", "rows"), [("assistant.jsonl", 20), ("faulty.jsonl", 16)])
def test_lines_hold_the_rows_the_readme_counts(name: str, rows: int) -> None:
    assert len((EXAMPLES / name).read_bytes().splitlines()) == rows


def test_the_example_config_reads_every_file(turnmill) -> None:
    sources = turnmill("config", "show", EXAMPLES / "run.yaml", "--json").json["config"]["sources"]
    read = {Path(path).name for source in sources for path in source["data"]}
    assert read == {path.name for path in EXAMPLES.glob("*.json*")}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the demo ran, and what it said."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(EXAMPLES, folder / "examples")
    done = subprocess.run([sys.executable, "examples/demo.py"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def test_the_demo_says_where_everything_lies(demo: tuple[Path, str]) -> None:
    folder, said = demo
    named = re.findall(r"^   (demo/\S+)", said, re.MULTILINE)
    assert len(named) > 8
    assert [path for path in named if not (folder / path).exists()] == []


def test_the_demo_prepares_real_rows_and_leaves_the_faulty_ones_out(demo: tuple[Path, str]) -> None:
    report = json.loads((demo[0] / "demo/out/report.json").read_text("utf-8"))
    rows = {name: source["rows"] for name, source in report["per_source"].items()}
    assert (rows["tool-calls"]["read"], rows["weighted"]["read"]) == (300, 500)
    assert {name: count["rejected"] for name, count in rows.items() if count["rejected"]} == {
        "faulty": 15,
        "tool-calls": 1,
    }


@pytest.mark.parametrize("said", ["rows: 872 read", "weight-zero", "unknown-speaker", "What the model learns to write"])
def test_the_demo_explains(demo: tuple[Path, str], said: str) -> None:
    assert said in demo[1]
