"""The models that an audit asks: a directory of weights or adapters, or an endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.causal_lm import Placement, placed
from turnmill.conversation import Json
from turnmill.endpoints import Endpoint, open_pool
from turnmill.errors import UsageError, shell_word
from turnmill.evaluation.endpoint_model import EndpointModel, only_model
from turnmill.evaluation.local_model import LocalModel
from turnmill.evaluation.questions import Question
from turnmill.evaluation.respondents import Respondent, Sampling
from turnmill.files.prepared import PreparedData
from turnmill.models import LoadedModel, open_model
from turnmill.options import Model
from turnmill.verbs.evaluated_model import identity, loaded, options_of, weights_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

URLS = ("http://", "https://")
COMPARED = 32
"""Questions by which it is seen whether a model has the tokenizer that the data were made with."""


class Asked(NamedTuple):
    """One model, and how it is reached."""

    model: str
    """A directory of a model or of adapters, `smollm2`, or the URL of an endpoint up to `/v1`."""
    base: str | None = None
    """The model that adapters change."""
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


Open = Callable[[PreparedData, Sequence[Question]], Respondent]
"""Loads the model; given the data, and what will be asked."""


def opener(asked: Asked, sampling: Sampling) -> Open:
    """What loads the model, once it has been seen that it is there: an endpoint has said hello.

    Raises:
        UsageError: there is no such model, or the endpoint cannot be used.
    """
    if asked.is_endpoint:
        endpoint = _endpoint(asked, sampling)
        return lambda data, questions: endpoint
    if asked.name is not None:
        raise UsageError("--name is that of a model at an endpoint", next_step="turnmill audit URL OUT --name NAME")
    placed(asked.placement, "audit")
    weights_of(asked.model, asked.base)
    return lambda data, questions: _local(asked, data, questions, sampling)


def _endpoint(asked: Asked, sampling: Sampling) -> EndpointModel:
    if asked.base is not None:
        raise UsageError("--base goes with a directory of adapters", next_step="turnmill audit DIR OUT --base DIR")
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
    weights = weights_of(asked.model, asked.base)
    opened_with = options_of(asked.model, weights, Model(template="chatml"))  # the template is that of the data
    tokenizer = _tokenizer(open_model(opened_with), data, questions)
    named: dict[str, Json] = {"model": asked.model, **identity(weights), "dtype": placement.dtype}
    model = loaded(weights, placement)
    return LocalModel(model, tokenizer, _ends(model, tokenizer, data), sampling, named, asked.max_batch_tokens)


def _ends(model: Any, tokenizer: Tokenizer, data: PreparedData) -> list[int]:
    """Tokens at which generation ends: the data's template's, and the model's own."""
    named = [tokenizer.token_to_id(token) for token in data.manifest["template"]["eos"]]
    own = model.generation_config.eos_token_id
    return sorted({token for token in [*named, *([own] if isinstance(own, int) else own or [])] if token is not None})


def _tokenizer(model: LoadedModel, data: PreparedData, questions: Sequence[Question]) -> Tokenizer:
    """The model's tokenizer.

    Raises:
        UsageError: there is none, or it is not the one that the data were made with.
    """
    tokenizer = model.tokenizer()
    if model.tokenizer_sha256 == data.manifest["model"]["tokenizer_sha256"]:
        return tokenizer
    compared = [question for question in questions if question.said][:COMPARED]
    decoded = [tokenizer.decode(one.answer_ids.tolist(), skip_special_tokens=False) for one in compared]
    if compared and not any(_begin(one.said) in text for one, text in zip(compared, decoded, strict=True)):
        what = f"{model.name} has another tokenizer than {data.folder} was prepared with: its tokens say other texts"
        raise UsageError(what, next_step=f"turnmill prepare DATA --model {shell_word(model.name)} --output OUT")
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
