from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    place = tmp_path / "shelf"
    place.mkdir()
    return place


@pytest.fixture
def put(shelf: Path) -> Callable[..., Path]:
    """Puts a dataset on the shelf; gives its directory."""

    def call(name: str = "facts", manifest: str | bytes = 'file = "rows.jsonl"', rows: bytes | None = ROW) -> Path:
        folder = shelf / name
        folder.mkdir()
        folder.joinpath("dataset.toml").write_bytes(manifest.encode() if isinstance(manifest, str) else manifest)
        if rows is not None:
            folder.joinpath("rows.jsonl").write_bytes(rows)
        return folder

    return call
