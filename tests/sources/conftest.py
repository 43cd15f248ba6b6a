"""Small sources in files of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pinned_sources import BuiltSource, Row

OWN = """
from turnmill.errors import Filtered, Rejected
from turnmill.sources import Pin, PinnedSource

def mine():
    return PinnedSource(Pin({data!r}, ("*.jsonl",)), tokens=1e6, licence="cc0-1.0", {more})

{code}
"""


@pytest.fixture
def own(tmp_path: Path) -> Callable[..., str]:
    """Writes a source over rows: what the registry knows it by."""

    def call(*rows: Row, more: str = "", code: str = "") -> str:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        path = tmp_path / "own.py"
        path.write_text(OWN.format(data=str(folder), more=more, code=code))
        return f"{path}:mine"

    return call


@pytest.fixture
def build(own, tmp_path: Path) -> Callable[..., BuiltSource]:
    """Builds such a source whole."""

    def call(*rows: Row, more: str = "", code: str = "") -> BuiltSource:
        return BuiltSource(own(*rows, more=more, code=code), tmp_path / "cache")

    return call
