"""isolate: whether a model keeps the examples of a packed row apart."""

from __future__ import annotations

import math
from pathlib import Path

from turnmill import smollm2
from turnmill.causal_lm import Placement, load, placed
from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
from turnmill.isolation import Verdict, probe


def isolate(model: str, placement: Placement) -> Verdict:
    """Load a model, as it would be trained or scored, and try every layout on it.

    Args:
        model: its directory, or `smollm2`.
        placement: device, numbers and attention.

    Raises:
        UsageError: no such model, or it cannot be loaded.
    """
    settled = placed(placement, "isolate")
    directory = smollm2.weights_directory() if model == smollm2.NAME else Path(model).expanduser()
    if not (directory / "config.json").is_file():
        raise UsageError(
            f"{directory} holds no config.json; expected a model directory with weights, or smollm2",
            next_step=f"ls {shell_word(directory.parent)}",
        )
    return probe(load(directory, settled))


def as_json(verdict: Verdict) -> dict[str, Json]:
    """The verdict for programs; what could not be measured is null."""
    return {
        "model_type": verdict.model_type, "attention": verdict.attention, "device": verdict.device,
        "dtype": verdict.dtype, "isolates": verdict.isolates, "layout": verdict.layout, "reason": verdict.reason,
        "layouts": [
            {
                "layout": one.layout, "leak": _number(one.leak), "difference": _number(one.difference),
                "fault": one.fault,
            }
            for one in verdict.found
        ],
    }  # fmt: skip


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
