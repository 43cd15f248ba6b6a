"""The models that an audit asks: a directory, with an adapter or without, or an endpoint."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from turnmill import smollm2
from turnmill.causal_lm import Placement, load, placed
from turnmill.conversation import Json
from turnmill.endpoints import Endpoint, open_pool
from turnmill.errors import UsageError, quote, shell_word
from turnmill.evaluation.endpoint_model import EndpointModel, only_model
from turnmill.evaluation.local_model import LocalModel
from turnmill.evaluation.questions import Question
from turnmill.evaluation.respondents import Respondent, Sampling
from turnmill.files.prepared import PreparedData
from turnmill.models import open_model
from turnmill.options import Model
from turnmill.scorers.weights import weights_digest

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ADAPTER = "adapter_config.json"
URLS = ("http://", "https://")
COMPARED = 32
"""Questions by which it is seen whether a model has the tokenizer that the data were made with."""


class Asked(NamedTuple):
    """One model, and how it is reached."""

    model: str
    """A directory, `smollm2`, or the URL of an endpoint up to `/v1`."""
    adapter: Path | None = None
    name: str | None = None
    """Of the model at an endpoint; None: its only one."""
    placement: Placement = Placement()
    max_batch_tokens: int | None = None
    concurrency: int = 8
    timeout_s: float = 120.0

    @property
    def is_endpoint(self) -> bool:
        """Whether it is asked over HTTP."""
        return self.model.startswith(URLS)


def open_respondent(asked: Asked, data: PreparedData, questions: Sequence[Question], sampling: Sampling) -> Respondent:
    """The model, loaded, or the endpoint, once it has said hello.

    Raises:
        UsageError: it cannot be loaded or used, or has another tokenizer than the data.
    """
    if asked.is_endpoint:
        return _endpoint(asked, sampling)
    if asked.name is not None:
        raise UsageError("--name is that of a model at an endpoint", next_step="turnmill audit URL DATA --name NAME")
    return _local(asked, data, questions, sampling)


def _endpoint(asked: Asked, sampling: Sampling) -> EndpointModel:
    if asked.adapter is not None:
        raise UsageError("--adapter goes with a model directory", next_step="turnmill audit DIR DATA --adapter DIR")
    pool = open_pool("an endpoint", asked.timeout_s, asked.concurrency)
    again = f"curl {shell_word(asked.model.rstrip('/') + '/models')}"
    endpoint = Endpoint(
        pool, asked.model, asked.name or "", purpose="be asked", otherwise=again, concurrency=asked.concurrency
    )
    if asked.name is None:
        endpoint.model = only_model(endpoint)
    return EndpointModel(endpoint, sampling)


def _local(asked: Asked, data: PreparedData, questions: Sequence[Question], sampling: Sampling) -> LocalModel:
    placement = placed(asked.placement, "audit")
    directory, adapter = _directories(asked)
    tokenizer = _tokenizer(directory, data, questions)
    identity: dict[str, Json] = {
        "model": asked.model, "weights": weights_digest(directory), "dtype": placement.dtype,
        "adapter": None if adapter is None else {"name": str(adapter), "weights": _adapter_digest(adapter)},
    }  # fmt: skip
    model = load(directory, placement)
    if adapter is not None:
        model = _adapted(model, adapter)
    return LocalModel(model, tokenizer, _ends(model, tokenizer, data), sampling, identity, asked.max_batch_tokens)


def _directories(asked: Asked) -> tuple[Path, Path | None]:
    """Directory of the model, and of its adapter: a directory that holds an adapter alone names its model."""
    directory = smollm2.weights_directory() if asked.model == smollm2.NAME else Path(asked.model).expanduser()
    if (directory / "config.json").is_file():
        return directory, asked.adapter
    if not (directory / ADAPTER).is_file():
        raise UsageError(
            f"{directory} holds no config.json; expected a model directory with weights, smollm2, or a URL",
            next_step=f"ls {shell_word(directory.parent)}",
        )
    try:
        base = str(json.loads((directory / ADAPTER).read_bytes())["base_model_name_or_path"])
    except (ValueError, KeyError, TypeError):
        base = "BASE"
    if base == smollm2.NAME or (Path(base) / "config.json").is_file():
        return _directories(asked._replace(model=base, adapter=directory))
    what = f"{directory} holds an adapter of {base!r}, which is no model directory here"
    raise UsageError(what, next_step=f"turnmill audit BASE DATA --adapter {shell_word(directory)} --output DIR")


def _adapted(model: Any, adapter: Path) -> Any:
    """The model with an adapter in its layers.

    Raises:
        UsageError: peft is missing, or it is no adapter of this model.
    """
    try:
        from peft import PeftModel
    except ImportError:
        raise UsageError("an adapter needs peft, which is not installed", next_step="pip install peft") from None
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of peft about transformers
            return PeftModel.from_pretrained(model, str(adapter)).eval()
    except (OSError, ValueError, RuntimeError, KeyError) as problem:
        what = f"cannot put the adapter in {adapter} on the model: {quote((str(problem).splitlines() or [''])[0])}"
        raise UsageError(what, next_step=f"ls {shell_word(adapter)}") from problem


def _adapter_digest(adapter: Path) -> str:
    """32 hex digits over an adapter's weights and config.

    Raises:
        UsageError: there is none.
    """
    files = sorted([*adapter.glob("adapter_model.*"), *adapter.glob(ADAPTER)])
    if len(files) < 2:
        raise UsageError(f"{adapter} holds no adapter ({ADAPTER})", next_step=f"ls {shell_word(adapter)}")
    digest = xxhash.xxh3_128()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _ends(model: Any, tokenizer: Tokenizer, data: PreparedData) -> list[int]:
    """Tokens at which generation ends: the data's template's, and the model's own."""
    named = [tokenizer.token_to_id(token) for token in data.manifest["template"]["eos"]]
    own = model.generation_config.eos_token_id
    return sorted({token for token in [*named, *([own] if isinstance(own, int) else own or [])] if token is not None})


def _tokenizer(directory: Path, data: PreparedData, questions: Sequence[Question]) -> Tokenizer:
    """The model's tokenizer.

    Raises:
        UsageError: there is none, or it is not the one that the data were made with.
    """
    model = open_model(Model(name_or_path=str(directory), template="chatml"))  # the template is that of the data
    tokenizer = model.tokenizer()
    if model.tokenizer_sha256 == data.manifest["model"]["tokenizer_sha256"]:
        return tokenizer
    compared = [question for question in questions if question.said][:COMPARED]
    decoded = [tokenizer.decode(one.answer_ids.tolist(), skip_special_tokens=False) for one in compared]
    if compared and not any(_begin(one.said) in text for one, text in zip(compared, decoded, strict=True)):
        what = f"{directory} has another tokenizer than {data.folder} was prepared with: its tokens say other texts"
        raise UsageError(what, next_step=f"turnmill prepare DATA --model {shell_word(directory)} --output OUT")
    return tokenizer


def _begin(said: str) -> str:
    """The beginning of a recorded answer: calls stand otherwise in each template, so their names alone."""
    first = said.strip().partition("\n")[0]
    if first.startswith("{") and '"name"' in first:
        try:
            return str(json.loads(first)["name"])
        except (ValueError, KeyError, TypeError):
            return first[:16]
    return first[:16]
