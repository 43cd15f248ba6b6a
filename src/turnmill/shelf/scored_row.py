"""A row with what its tokens cost a model, which is loaded in a process of its own and gone with it."""

from __future__ import annotations

import subprocess
import sys

import msgspec

from turnmill.conversation import Json
from turnmill.errors import TurnmillError, UsageError
from turnmill.verbs.explain import Selection, explain

MAX_SECONDS = 120.0
"""That a row may take, with the loading of the model."""


class Asked(msgspec.Struct, frozen=True):
    """What the process is given."""

    source: dict[str, Json]
    row: int
    sections: dict[str, dict[str, Json]]


class Answered(msgspec.Struct, frozen=True):
    """What it gives back: a row, or why there is none."""

    explanation: dict[str, Json] | None = None
    refusal: str = ""


def explain_scored(source: dict[str, Json], row: int, sections: dict[str, dict[str, Json]]) -> dict[str, Json]:
    """The row as `explain --json --score.on true` says it.

    Args:
        source: of a config, with one file of rows.
        row: its number, from 0.
        sections: of the config.

    Raises:
        UsageError: no such row, the model has no weights or cannot be used, or it took too long.
    """
    asked = msgspec.json.encode(Asked(source, row, {**sections, "score": {"on": True}}))
    command = [sys.executable, "-P", "-m", "turnmill.shelf.scored_row"]
    try:
        done = subprocess.run(command, input=asked, capture_output=True, timeout=MAX_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise UsageError(f"the row was not scored within {MAX_SECONDS:.0f} s") from None
    if done.returncode:
        raise UsageError(f"the row was not scored: its process ended with code {done.returncode}")
    answered = msgspec.json.decode(done.stdout, type=Answered)
    if answered.explanation is None:
        raise UsageError(answered.refusal)
    return answered.explanation


def _answer(asked: Asked) -> Answered:
    from turnmill.config import reloaded

    try:
        config = reloaded({"sources": [asked.source], **asked.sections})
        return Answered(next(explain(config, {}, Selection(str(asked.row)))).as_json())
    except TurnmillError as fault:
        return Answered(None, fault.message)


def main() -> int:
    """Explains and scores what standard input asks for."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Asked)
    sys.stdout.buffer.write(msgspec.json.encode(_answer(asked)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
