from __future__ import annotations

import json
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
