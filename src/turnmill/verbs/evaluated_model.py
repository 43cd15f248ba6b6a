"""The model that is evaluated or asked: a directory with weights, or adapters over those of another."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill import smollm2
from turnmill.causal_lm import Placement, load, placed
from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
from turnmill.models import LoadedModel, open_model
from turnmill.options import Model
from turnmill.scorers.weights import weights_digest

if TYPE_CHECKING:
    from turnmill.options import Evaluate

ADAPTER = "adapter_config.json"
"""Of a directory of adapters, as peft saves them."""


class Weights(NamedTuple):
    """Where a model's weights lie."""

    directory: Path
    """Of the whole model, or of the one that the adapters change."""
    adapter: Path | None = None


def weights_of(name: str, base: str | None = None) -> Weights:
    """The weights that a name stands for.

    Args:
        name: a model directory, a directory of adapters, or `smollm2`.
        base: of adapters, the model that they change; None: what they say themselves.

    Raises:
        UsageError: there is no such directory, or it holds no weights.
    """
    adapter = Path(name).expanduser()
    if not (adapter / ADAPTER).is_file():
        if base is not None:
            what = f"{name} holds no adapters ({ADAPTER}); a base model goes with adapters alone"
            raise UsageError(what, next_step=f"ls {shell_word(name)}")
        return Weights(_whole_model(name))
    said = base or _base_of(adapter)
    if not said or not (said == smollm2.NAME or Path(said).expanduser().is_dir()):
        what = f"the adapters in {name} change the model {said!r}, which is not here; expected its directory"
        raise UsageError(what, next_step="--base DIR")
    return Weights(_whole_model(said), adapter)


def _whole_model(name: str) -> Path:
    """A directory that holds a whole model."""
    if name == smollm2.NAME:
        return smollm2.weights_directory()
    directory = Path(name).expanduser()
    if not (directory / "config.json").is_file():
        what = f"{name} is no model directory: it has no config.json; expected one with weights, adapters, or smollm2"
        raise UsageError(what, next_step=f"ls {shell_word(directory if directory.is_dir() else directory.parent)}")
    return directory


def _base_of(adapter: Path) -> str | None:
    try:
        said = json.loads((adapter / ADAPTER).read_text("utf-8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        what = f"{adapter / ADAPTER} cannot be read: {problem}"
        raise UsageError(what, next_step=f"ls -l {shell_word(adapter)}") from problem
    return None if said is None else str(said)


def options_of(name: str, weights: Weights, given: Model) -> Model:
    """What its tokenizer and template are opened with: its own files; of adapters without any, the base model's.

    Args:
        name: as it was asked for.
        weights: what that stands for.
        given: the `model` section; its template goes over the model's own.
    """
    own = name
    if weights.adapter is not None and not (weights.adapter / "tokenizer.json").is_file():
        own = str(weights.directory)
    return Model(name_or_path=own, template=given.template, special_tokens=given.special_tokens)


def opened(name: str, weights: Weights, given: Model) -> tuple[Model, LoadedModel]:
    """The model's tokenizer and template, and what they are opened with.

    Raises:
        UsageError: they cannot be used.
    """
    options = options_of(name, weights, given)
    return options, open_model(options)


def settled(options: Evaluate) -> Placement:
    """Where the model runs, and in which numbers.

    Raises:
        UsageError: transformers or torch is missing.
    """
    return placed(Placement(options.device, options.dtype, options.attention, options.threads), "evaluate")


def identity(weights: Weights) -> dict[str, Json]:
    """The model by its content.

    Raises:
        UsageError: there are no weights.
    """
    whole: dict[str, Json] = {"weights": weights_digest(weights.directory)}
    return whole if weights.adapter is None else {**whole, "adapter": weights_digest(weights.adapter)}


def loaded(weights: Weights, placement: Placement) -> Any:
    """The model, in evaluation mode, with its adapters.

    Raises:
        UsageError: it cannot be loaded, or peft is missing.
    """
    model = load(weights.directory, placement)
    if weights.adapter is None:
        return model
    try:
        from peft import PeftModel
    except ImportError:
        raise UsageError(
            "adapters need peft, which is not installed", next_step="pip install 'turnmill[train]'"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)  # it asks transformers so
            return PeftModel.from_pretrained(model, str(weights.adapter)).eval()
    except (OSError, ValueError, RuntimeError, KeyError) as problem:
        first = (str(problem).splitlines() or [""])[0]
        what = f"cannot put the adapters in {weights.adapter} on {weights.directory}: {first}"
        raise UsageError(what, next_step="--base DIR") from problem
