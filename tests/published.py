"""Reading a prepared folder back with pyarrow alone, as a program that does not know turnmill would."""

from __future__ import annotations

import hashlib
import itertools
import json
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

IGNORE = -100
Row = dict[str, Any]


def prepared(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """OUT of some rows below a folder, as the command makes it for SmolLM2."""
    from turnmill.cli.app import run

    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--model", "smollm2", "--workers", "1", "--output", str(folder / "out")]
    assert run(["prepare", str(folder / "rows.jsonl"), *flags]) == 0
    return folder / "out"


class Published:
    """An OUT of `turnmill prepare`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "manifest.json").read_text())

    @cached_property
    def report(self) -> dict[str, Any]:
        return json.loads((self.folder / "report.json").read_text())

    def table(self, place: str) -> list[Row]:
        """The rows of all Parquet files in a folder."""
        return [
            row for path in sorted((self.folder / place).glob("*.parquet")) for row in pq.read_table(path).to_pylist()
        ]

    def arrow(self, place: str) -> list[Row]:
        """The rows of all Arrow files in a folder."""
        paths = sorted((self.folder / place).glob("*.arrow"))
        return [row for path in paths for row in pa.ipc.open_file(pa.memory_map(str(path))).read_all().to_pylist()]

    def examples(self, side: str = "train") -> list[Row]:
        return self.arrow(f"{side}/examples")

    def plan(self, side: str = "train") -> list[list[int]]:
        return [row["examples"] for row in self.arrow(f"{side}/plans")]

    def packed(self, side: str = "train") -> list[Row]:
        return self.table(f"{side}/packed")

    def conversations(self, side: str = "train") -> list[Row]:
        return self.table(f"conversations/{side}")

    @property
    def sha256(self) -> dict[str, str]:
        """Path → hash of every file but `run.json`, which no comparison reads."""
        return {name: digest for name, digest in hashes(self.folder).items() if name != "run.json"}


def hashes(folder: Path) -> dict[str, str]:
    """Path → hash of every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def documents(pack: Row) -> list[tuple[list[int], list[int]]]:
    """Ids and labels of each document of a pack."""
    ends = [0, *itertools.accumulate(pack["seq_lengths"])]
    return [(pack["input_ids"][a:b], pack["labels"][a:b]) for a, b in itertools.pairwise(ends)]


def labels_of(example: Row) -> list[int]:
    """An example's labels from its runs."""
    marked: list[int] = []
    for end, weight in zip(example["run_ends"], example["run_weights"], strict=True):
        start = len(marked)
        marked += example["input_ids"][start:end] if weight > 0 else [IGNORE] * (end - start)
    return marked


def trained_texts(example: Row, tokenizer: Any) -> list[str]:
    """The decoded stretches of labelled tokens."""
    pairs = zip(example["input_ids"], labels_of(example), strict=True)
    return [
        tokenizer.decode([number for number, _ in group], skip_special_tokens=False)
        for trained, group in itertools.groupby(pairs, key=lambda pair: pair[1] != IGNORE)
        if trained
    ]
