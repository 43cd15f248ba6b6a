"""The evaluation sets of a training: those of the config, else the held-out rows of the data."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.files.prepared import PreparedData
from turnmill.models import open_model
from turnmill.options import Model
from turnmill.verbs.eval_sets import Asked, EvalSets, eval_sets

if TYPE_CHECKING:
    from turnmill.config import Config, Origins


def sets_of(config: Config, origins: Origins, data: PreparedData, directory: Path) -> EvalSets | None:
    """What the model is measured on while it trains; None where nothing was held out and nothing is named.

    Args:
        config: of the run.
        origins: of its values.
        data: what is trained on; raw rows follow its recipe.
        directory: of the model.

    Raises:
        UsageError: a set that is named cannot be read.
        HealthError: one that is named gives too few examples.
        StaleError: a prepared folder was made with another tokenizer or template.
    """
    options = config.evaluate
    is_named = bool(options.eval_sources or options.eval_dataset or options.battery)
    if not is_named and not len(data.examples("eval")):
        return None
    template = data.manifest["template"]
    model = Model(name_or_path=str(directory), template="chatml")  # any: the one that is trained takes its place
    loaded = dataclasses.replace(
        open_model(model), template=template["text"], template_origin=template["origin"], eos=frozenset(template["eos"])
    )
    return eval_sets(Asked(config, origins, model, loaded, like=data))
