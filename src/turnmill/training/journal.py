"""`metrics.jsonl`: what a run logged, a JSON object a line; a run that goes on repeats no line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

from turnmill.conversation import Json
from turnmill.files.disk import writing

METRICS = "metrics.jsonl"


class Journal:
    """The metrics of a run, on the disk as they come.

    Args:
        path: the file.
        step: optimizer steps that a run goes on from: what was logged behind them is forgotten.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = [line for line in read_metrics(path) if int(str(line.get("step", 0))) <= step] if step else []
        with writing(path):
            self.path.write_text("".join(map(_line, kept)), encoding="utf-8")

    def write(self, **values: Json) -> None:
        """Add a line; numbers that JSON has no form for are null."""
        with writing(self.path), self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(_line(values))


def _line(values: dict[str, Json]) -> str:
    sayable = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }
    return json.dumps(sayable, ensure_ascii=False) + "\n"


def read_metrics(path: Path) -> list[dict[str, Json]]:
    """The lines of a file of metrics; none where there is none. A line that a crash cut is left out."""
    return list(_lines(path)) if path.is_file() else []


def _lines(path: Path) -> Iterator[dict[str, Json]]:
    for line in path.read_text("utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            return
