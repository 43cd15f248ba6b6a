from __future__ import annotations

import numpy as np
import pytest

from turnmill.evaluation.questions import Turn, by_example, call_line, turns_of
from turnmill.rendered import Example, Run


def example(*runs: tuple[int, int, str, float], ends: list[int]) -> Example:
    """(tokens, message, kind, weight) of each run."""
    behind = np.cumsum([size for size, *_ in runs]).tolist()
    made = [Run(end, message, kind, weight) for end, (_, message, kind, weight) in zip(behind, runs, strict=True)]
    return Example("r", 0, "s", "f", 1, list(range(behind[-1])), made, ends)


PROMPT = (5, 0, "user", 0.0)
TURNS = [
    ([PROMPT, (3, 1, "frame", 0), (4, 1, "answer", 1), (1, 1, "stop", 1)], [13], [Turn(8, 13, 12, 1)]),
    ([PROMPT, (3, 1, "frame", 0), (4, 1, "answer", 1)], [12], [Turn(8, 12, 12, 1)]),  # no stop
    ([PROMPT, (2, 1, "scaffold", 0), (3, 1, "reasoning", 1), (4, 1, "answer", 1), (1, 1, "stop", 1)], [15],
     [Turn(7, 15, 14, 1)]),
    ([PROMPT, (3, 1, "reasoning", 0), (4, 1, "answer", 1), (1, 1, "stop", 1)], [13], [Turn(5, 13, 12, 1)]),
    ([PROMPT, (2, 1, "answer", 0), (1, 1, "stop", 0), (3, 2, "user", 0), (4, 3, "answer", 1), (1, 3, "stop", 1)],
     [16], [Turn(11, 16, 15, 3)]),  # the first turn does not train
    ([PROMPT, (2, 1, "call", 1), (1, 1, "stop", 1), (3, 2, "result", 1), (4, 3, "answer", 1), (1, 3, "stop", 1)],
     [8, 16], [Turn(5, 8, 7, 1), Turn(11, 16, 15, 3)]),  # a trained result is no answer
    ([(5, -1, "answer", 1)], [], []),
]  # fmt: skip


@pytest.mark.parametrize(("runs", "ends", "turns"), TURNS)
def test_turns_begin_where_their_prompts_end(runs, ends, turns):
    assert turns_of(example(*runs, ends=ends)) == turns


@pytest.mark.parametrize(
    ("arguments", "line"),
    [('{"b": 1, "a": 2}', '{"arguments": {"a": 2, "b": 1}, "name": "f"}'), ("{", '{"name": "f", "arguments": "{"}')],
)
def test_calls_are_lines_of_json(arguments, line):
    assert call_line("f", arguments) == line


def test_nothing_is_grouped_of_nothing():
    assert by_example([]) == []
