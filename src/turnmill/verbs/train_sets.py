"""The evaluation sets of a training: those of the config, else the held-out rows of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnmill.evaluation.sets import EvalSet, prepared_sets
from turnmill.files.prepared import PreparedData

if TYPE_CHECKING:
    from turnmill.config import Config


def eval_sets(config: Config, data: PreparedData) -> list[EvalSet]:
    """What the model is measured on while it trains; none where nothing was held out."""
    return prepared_sets(data, samples=config.evaluate.samples, seed=config.seed)
