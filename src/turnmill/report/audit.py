"""What an audit found: means over the turns, of the model, its baseline and between the two."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from turnmill.conversation import Json
from turnmill.evaluation.answers import Estimate, Nearness, mean_of
from turnmill.evaluation.questions import Question
from turnmill.evaluation.respondents import Answer

MEASURES = ("exact", "normalised", "f1")
NLL = "nll"


class Given(Protocol):
    """What one model said."""

    @property
    def answers(self) -> list[Answer]:
        """To each question."""

    @property
    def near(self) -> list[Nearness | None]:
        """How near each lies; None where there is none."""

    @property
    def nll(self) -> list[float | None]:
        """Nats of each recorded answer; None where they are not known."""

    @property
    def costless(self) -> dict[str, int]:
        """Why they are not known → how often."""


def summary_of(questions: Sequence[Question], given: Sequence[Given], about: dict[str, Json]) -> dict[str, Any]:
    """The summary: `about`, then what was measured, over all and by source.

    Args:
        questions: that were asked.
        given: of the model, and of its baseline where there is one.
        about: what the summary begins with.
    """
    everything = list(range(len(questions)))
    sources: dict[str, list[int]] = {}
    for number, question in enumerate(questions):
        sources.setdefault(question.source, []).append(number)
    return {
        **about,
        "measures": _measures(questions, given, everything),
        "sources": {
            name: {
                "rows": len({questions[number].row_id for number in numbers}),
                "turns": len(numbers),
                "measures": _measures(questions, given, numbers),
            }
            for name, numbers in sources.items()
        },
        **{
            name: {
                "ended": sum(answer.ended for answer in one.answers),
                "unanswered": dict(Counter(answer.fault for answer in one.answers if answer.fault is not None)),
                "nll_unknown": one.costless,
            }
            for name, one in zip(("of_model", "of_baseline"), given, strict=False)
        },
    }


def _measures(questions: Sequence[Question], given: Sequence[Given], numbers: Sequence[int]) -> dict[str, Json]:
    """Measure → model, baseline and difference, each `{"mean", "error", "turns"}`; what is not known is null."""
    found: dict[str, Json] = {}
    for name in (*MEASURES, NLL):
        values = [[_value(one, name, number) for number in numbers] for one in given]
        weights = [int(questions[number].trained.sum()) if name == NLL else 1 for number in numbers]
        rows = [questions[number].row_id for number in numbers]
        sides = dict(zip(("model", "baseline"), values, strict=False))
        found[name] = {side: _as_json(_mean(of_side, rows, weights)) for side, of_side in sides.items()}
        if len(values) == 2:
            between = [a - b if a is not None and b is not None else None for a, b in zip(*values, strict=True)]
            found[name]["difference"] = _as_json(_mean(between, rows, weights))
    return found


def _value(one: Given, name: str, number: int) -> float | None:
    if name == NLL:
        return one.nll[number]
    near = one.near[number]
    return None if near is None else float(getattr(near, name))


def _mean(values: Sequence[float | None], rows: Sequence[str], weights: Sequence[int]) -> Estimate:
    known = [place for place, value in enumerate(values) if value is not None]
    return mean_of([values[n] or 0.0 for n in known], [rows[n] for n in known], [weights[n] for n in known])


def _as_json(found: Estimate) -> dict[str, Json] | None:
    if not found.turns:
        return None
    error = None if math.isnan(found.error) else found.error
    return {"mean": found.mean, "error": error, "turns": found.turns}


NAMES = {
    "exact": "exact match",
    "normalised": "normalised match",
    "f1": "F1 of words",
    "nll": "nats a token of the recorded answer",
}


def measure_rows(measures: dict[str, Any]) -> list[list[str]]:
    """A line a measure: model, baseline, difference, each with its standard error."""
    return [
        [NAMES[name], *(_cell(one.get(side), name, side) for side in ("model", "baseline", "difference"))]
        for name, one in measures.items()
    ]


def _cell(found: dict[str, Any] | None, name: str, side: str) -> str:
    if found is None:
        return "–"
    sign = "+" if side == "difference" else ""
    scale, unit = (1, "") if name == NLL else (100, " %")
    error = "" if found["error"] is None else f" ± {scale * found['error']:.{3 if scale == 1 else 1}f}"
    return f"{scale * found['mean']:{sign}.{3 if scale == 1 else 1}f}{error}{unit}"
