"""What a job may say of its run: a closed set of options, each one field of the config, and none that names a place."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turnmill.config import as_yaml, reloaded
from turnmill.conversation import Json
from turnmill.errors import UnknownName, UsageError, quote
from turnmill.models import own_templates
from turnmill.options import Fit, Loss, Render, Split
from turnmill.sidecar.problems import Refused
from turnmill.train_options import Lora, Train

OF_THE_START = ("dataset", "dataset_content", "job", "model")
"""Keys of a job start that are no options."""
TRAIN_FIELDS = (
    "method", "packing", "batch_size", "gradient_accumulation_steps", "epochs", "max_steps", "exact_steps",
    "learning_rate", "min_learning_rate", "schedule", "warmup_ratio", "weight_decay", "max_grad_norm",
    "gradient_checkpointing", "dtype", "eval_every", "patience", "save_every", "log_every",
)  # fmt: skip
"""Fields of `Train` that go by their own name. Not among them: places, plug-ins, reports to others, and what belongs
to the machine."""


def _named(section: Any, path: str, fields: Mapping[str, str]) -> dict[str, str]:
    """Option → dotted path, for fields that the section has."""
    known = {field.name: field for field in dataclasses.fields(section)}
    return {option: f"{path}.{known[field].name}" for option, field in fields.items()}


OPTIONS: dict[str, str] = {
    "seed": "seed",
    "template": "model.template",
    **_named(Fit, "fit", {"max_tokens": "max_tokens", "overflow": "overflow"}),
    **_named(Split, "split", {"eval_fraction": "fraction", "eval_rows": "rows"}),
    **_named(Render, "render", {"history": "history"}),
    **_named(Loss, "loss", {"loss_turns": "turns", "loss_reasoning": "reasoning"}),
    **_named(Train, "train", {field: field for field in TRAIN_FIELDS}),
    **_named(Lora, "train.lora", {"lora_rank": "rank", "lora_alpha": "alpha", "lora_dropout": "dropout"}),
}
"""Option of a job → the field of the config that it sets."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What a job start asks for beside its dataset."""

    model: str
    """A name of the sidecar's."""
    given: dict[str, Json]
    """Option → value, of `OPTIONS`."""


def read_options(fields: Mapping[str, Json], models: Mapping[str, Path]) -> JobOptions:
    """The options among the keys of a job start.

    Args:
        fields: all of them, without those that are null.
        models: name → directory.

    Raises:
        Refused: a key that is none, a value that no run can have, or a model that the sidecar does not have.
    """
    unknown = sorted(fields.keys() - OPTIONS.keys() - set(OF_THE_START))
    if unknown:
        what = f"unknown keys: {quote(unknown, 300)}; expected {', '.join((*OF_THE_START, *OPTIONS))}"
        raise Refused(400, "option-unknown", what)
    given = {name: value for name, value in fields.items() if name in OPTIONS}
    template = given.get("template")
    if template is not None and template not in own_templates():
        what = f"template is {quote(template)}; expected {', '.join(own_templates())}, or none: that of the model"
        raise Refused(400, "option-invalid", what)
    made = JobOptions(_model_of(fields.get("model"), models), given)
    try:
        reloaded(_tree(made.given))
    except UsageError as problem:
        raise Refused(400, "option-invalid", _in_options(problem.message, given)) from None
    return made


def _model_of(name: Json, models: Mapping[str, Path]) -> str:
    if name is None and len(models) == 1:
        return next(iter(models))
    if isinstance(name, str) and name in models:
        return name
    if name is None:
        raise Refused(400, "model-unknown", f"the job names no model; expected model, one of {', '.join(models)}")
    raise Refused(400, "model-unknown", UnknownName("model", str(name)[:80], models).message)


def _in_options(message: str, given: Mapping[str, Json]) -> str:
    """A message about a field of the config, as one about the option that set it."""
    for option in given:
        path = OPTIONS[option]
        if message.startswith(f"{path}:"):
            return f"{option}{message.removeprefix(path)}"
    return message


def _tree(given: Mapping[str, Json]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for option, value in given.items():
        *sections, field = OPTIONS[option].split(".")
        inner = tree
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[field] = value
    return tree


def config_of(options: JobOptions, model: Path, data: Path, dialect: str, prepared: Path) -> bytes:
    """The YAML of a run, whole.

    Args:
        options: that were read before.
        model: directory.
        data: the dataset's file.
        dialect: how its rows say a chat.
        prepared: where they are prepared.
    """
    tree = _tree(options.given)
    tree.setdefault("model", {})["name_or_path"] = str(model)
    tree.setdefault("train", {})["data"] = str(prepared)
    tree["sources"] = [{"name": data.stem, "data": [str(data)], "dialect": dialect}]
    return as_yaml(reloaded(tree)).encode("utf-8") + b"\n"
