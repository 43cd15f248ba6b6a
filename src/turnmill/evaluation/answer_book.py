"""Answers as they come in, a line each: a run that was stopped asks only what is not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnmill.conversation import Json
from turnmill.evaluation.respondents import Answer


class AnswerBook:
    """The answers of one model, drawn in one way, in a file that grows.

    Args:
        path: the file; what it holds already is read, a line that was cut off left out.

    Attributes:
        answers: key of a question → its answer.
        costs: key of a question → nats of its recorded answer.
    """

    def __init__(self, path: Path) -> None:
        self.answers: dict[str, Answer] = {}
        self.costs: dict[str, float] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in _lines(path):
            if "text" in line:
                self.answers[line["key"]] = Answer(line["text"], line["ended"])
            else:
                self.costs[line["key"]] = line["nll"]
        self._file = path.open("a", encoding="utf-8", newline="\n")
        if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
            self._file.write("\n")

    def answer(self, key: str, answer: Answer) -> None:
        """Take down an answer; one that could not be had is to be asked for again."""
        self.answers[key] = answer
        if answer.fault is None:
            self._write({"key": key, "text": answer.text, "ended": answer.ended})

    def cost(self, key: str, nll: float) -> None:
        """Take down what a recorded answer costs."""
        self.costs[key] = nll
        self._write({"key": key, "nll": nll})

    def _write(self, line: dict[str, Json]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:  # a line that a kill cut off
                continue
            if isinstance(line, dict) and "key" in line:
                yield line
