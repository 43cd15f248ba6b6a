"""The metrics of a run that goes on elsewhere, in a file here: they stay when the run's own are gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Ask = Callable[[int], Mapping[str, Any]]
"""Step → the `metrics` behind it, and whether they are `truncated`."""


class MetricsMirror:
    """A file of a run's metrics, a line of JSON each.

    Args:
        path: of the file; one that is there is gone on with.
        ask: asks for what was logged.
    """

    def __init__(self, path: Path, ask: Ask) -> None:
        self._path, self._ask = path, ask
        self._step, self._end = 0, 0
        """The last step that is here, and the byte at which its lines begin: there can be more of them by now."""
        if path.exists():
            self._take_up(path.read_bytes().splitlines(keepends=True))

    def _take_up(self, lines: list[bytes]) -> None:
        at = 0
        for line in lines:
            try:
                step = json.loads(line)["step"]
            except (ValueError, KeyError, TypeError):  # a crash cut it: it is asked for again
                return
            if step != self._step:
                self._step, self._end = step, at
            at += len(line)

    def follow(self) -> None:
        """Bring what was logged since; errors as `ask` raises them."""
        is_whole = False
        while not is_whole:
            found = self._ask(self._step - 1)
            if found["metrics"]:
                self._write(found["metrics"])
            is_whole = not found["truncated"]

    def _write(self, metrics: list[dict[str, Any]]) -> None:
        """Put lines in the place of the last step's, of which they are the first."""
        lines = [(one["step"], json.dumps(one, ensure_ascii=False).encode() + b"\n") for one in metrics]
        self._path.touch()
        with self._path.open("r+b") as file:
            file.truncate(self._end)
            file.seek(self._end)
            for step, line in lines:
                if step != self._step:
                    self._step, self._end = step, file.tell()
                file.write(line)
