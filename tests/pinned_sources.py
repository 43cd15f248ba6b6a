"""Sources over their fixtures: rows in the format in which each dataset is published, laid out under its file names."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from turnmill.sources import Pin, sources
from turnmill.steps.graph import check_outcomes, run
from turnmill.steps.manifest import Artifact, read_artifact
from turnmill.verbs import check, dedup, prompts
from turnmill.verbs.render import Wording
from turnmill.verbs.source_steps import DEFAULT_WORDING, Chats, SourceNodes, Texts, nodes_of, shard_files

FIXTURES = Path(__file__).parent / "sources" / "fixtures"
OVERRIDE = """
import dataclasses
from turnmill.sources import Pin, sources

def {function}():
    source = sources.get({name!r})()
    withheld = source.withheld and source.withheld._replace(pin=Pin({holding!r}, source.withheld.pin.files))
    return dataclasses.replace(source, pin=Pin({data!r}, source.pin.files), withheld=withheld)
"""
Row = dict[str, Any]


def fixture_rows(name: str) -> list[Row]:
    """The rows of a fixture."""
    return [json.loads(line) for line in (FIXTURES / f"{name}.jsonl").read_text("utf-8").splitlines()]


def lay_out(rows: list[Row], pin: Pin, folder: Path) -> None:
    """Write rows as files that each of a pin's patterns names, in the format that its ending says."""
    for number, pattern in enumerate(pin.files):
        path = folder / pattern.replace("**", "a/b").replace("*", "00000-of-00001")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = rows[number :: len(pin.files)] or rows[:1]
        if path.suffix == ".parquet":
            pq.write_table(pa.Table.from_pylist(part), path)
        elif path.suffix == ".json":
            path.write_text(json.dumps(part, ensure_ascii=False, indent=1), "utf-8")
        else:
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in part), "utf-8")


def over(name: str, rows: list[Row], folder: Path, holding: list[Row] | None = None) -> str:
    """A source over such rows in place of those that it pins: what the registry knows it by."""
    source, function = sources.get(name)(), name.replace("-", "_")
    lay_out(rows, source.pin, folder / "data")
    if source.withheld is not None:
        lay_out(holding or fixture_rows(f"{name}.prompts"), source.withheld.pin, folder / "holding")
    path = folder / "override.py"
    places = {"data": str(folder / "data"), "holding": str(folder / "holding")}
    path.write_text(OVERRIDE.format(function=function, name=name, **places))
    return f"{path}:{function}"


class BuiltSource:
    """A source that was built whole in a folder."""

    def __init__(self, key: str, cache: Path, wording: Wording = DEFAULT_WORDING) -> None:
        self.key, self.cache = key, cache
        self.nodes: SourceNodes = nodes_of(key, wording)
        self.outcomes = run([self.nodes.normalized], cache)
        check_outcomes(self.outcomes)

    def folder(self, stage: str) -> Path:
        return self.nodes.named[stage].folder(self.cache)

    def artifact(self, stage: str) -> Artifact[Any]:
        return read_artifact(self.folder(stage), Chats if stage == "conversations" else Texts)

    def table(self, stage: str) -> list[Row]:
        """Rows of the artifact of a stage."""
        artifact = self.artifact(stage)
        return [row for name in artifact.result.files for row in pq.read_table(artifact.folder / name).to_pylist()]

    @cached_property
    def chats(self) -> dict[str | None, Row]:
        """Id in the source → chat."""
        return {row["source_id"]: row for row in self.table("conversations")}

    @cached_property
    def left(self) -> list[tuple[str, str, int]]:
        """Class, code and line of the rows that left at reading, and of those that repeat others."""
        files = [
            *shard_files(self.folder("check"), check.QUARANTINE),
            *shard_files(self.folder("dedup"), dedup.DUPLICATES),
        ]
        rows = [row for path in files for row in pq.read_table(path).to_pylist()]
        return [(row["class"], row["code"], row["source_line"]) for row in rows]

    def counters(self, stage: str) -> dict[str, int]:
        return self.artifact_counters(self.nodes.named[stage].folder(self.cache))

    @staticmethod
    def artifact_counters(folder: Path) -> dict[str, int]:
        return json.loads((folder / "manifest.json").read_text())["counters"]

    @property
    def prompts(self) -> list[Row]:
        (path,) = shard_files(self.folder("prompts"), prompts.PROMPTS)
        return pq.read_table(path).to_pylist()


def said(chat: Row) -> list[tuple[str, str]]:
    """Who says what in a chat: role or channel or call, and text."""
    return [(_speaker(one), "".join(part["text"] for part in one["content"])) for one in chat["messages"]]


def _speaker(message: Row) -> str:
    if message["role"] == "assistant" and message["recipient"]:
        return f"call {message['recipient']}"
    if message["role"] == "tool":
        return f"from {message['name']}"
    return message["channel"] or message["role"]
