"""Each step of a source has its version locked to its output: who changes what one makes raises its version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pinned_sources import BuiltSource, fixture_rows, over
from turnmill.verbs import check, normalize, prompts, render, source_steps
from turnmill.verbs.source_steps import downloaded, shard_files

NAMES = ("coderforge", "nemotron-chat", "openthoughts4-code")
LEFT = ("class", "code", "message", "stage", "source_line", "row", "at")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[BuiltSource]:
    folder = tmp_path_factory.mktemp("golden")
    made = []
    for name in NAMES:
        (folder / name).mkdir()
        made.append(BuiltSource(over(name, fixture_rows(name), folder / name), folder / name / "cache"))
    return made


def rows_of(source: BuiltSource, stage: str, name: str) -> list[dict[str, Any]]:
    return [row for path in shard_files(source.folder(stage), name) for row in pq.read_table(path).to_pylist()]


def fetched(source: BuiltSource) -> list[list[str]]:
    """Names and hashes; Parquet files that the test writes say which pyarrow wrote them."""
    files = downloaded(source.folder("download"))
    return [[name, "" if name.endswith(".parquet") else _sha256(Path(path).read_bytes())] for path, name in files]


def left(source: BuiltSource) -> list[dict[str, Any]]:
    return [{name: row[name] for name in LEFT} for row in rows_of(source, "check", check.QUARANTINE)]


OUTPUTS: dict[str, Callable[[BuiltSource], Any]] = {
    "download": fetched,
    "prompts": lambda source: source.prompts if "prompts" in source.nodes.named else [],
    "check": lambda source: [rows_of(source, "check", check.CONVERSATIONS), left(source)],
    "conversations": lambda source: source.table("conversations"),
    "render": lambda source: source.table("rendered"),
    "normalize": lambda source: [source.table("normalized"), rows_of(source, "normalized", normalize.DUPLICATES)],
}
VERSIONS = {
    "download": (source_steps.DOWNLOAD_VERSION, 1, "623d8fa045f6676c"),
    "prompts": (prompts.VERSION, 1, "efddafa058ed7025"),
    "check": ((check.VERSION, source_steps.SOURCE_VERSION), (3, 1), "9090441594b48c99"),
    "conversations": (source_steps.CONVERSATIONS_VERSION, 1, "39732b168e3a8371"),
    "render": (render.VERSION, 1, "0feb7e85ae8fc8a4"),
    "normalize": (normalize.VERSION, 1, "f276f94d185be1ce"),
}
"""Step → its version, and the version and digest that belong together."""


@pytest.mark.parametrize("step", VERSIONS)
def test_a_version_stands_for_one_output(built, step: str) -> None:
    version, locked, expected = VERSIONS[step]
    found = _sha256(json.dumps([OUTPUTS[step](source) for source in built], sort_keys=True, default=str).encode())[:16]
    assert (version, found) == (locked, expected)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
