"""Scores by a transformers model, on CPU or GPU: the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from turnmill.causal_lm import Placement, load, placed
from turnmill.conversation import Json
from turnmill.errors import UsageError
from turnmill.isolation import Layout, probe
from turnmill.options import Score
from turnmill.scorers import Nll, ToScore, Unscored, scorer
from turnmill.scorers.weights import weights_digest
from turnmill.token_costs import BATCH_TOKENS, TokenCosts

Packing = Literal["auto", "on", "off"]


class HfScorer:
    """A causal language model of transformers.

    Args:
        load: gives the model in evaluation mode, on its device; called when something is scored.
        max_batch_tokens: rows times longest of a batch.
        packing: whether a batch may be one row of several sequences; `on` demands it.
        identity: see `Scorer`.
    """

    def __init__(
        self, load: Callable[[], Any], max_batch_tokens: int, packing: Packing, identity: dict[str, Json]
    ) -> None:
        self._load = load
        self._max_batch_tokens = max_batch_tokens
        self._packing = packing
        self.identity = identity

    @cached_property
    def _model(self) -> Any:
        return self._load()

    @cached_property
    def costs(self) -> TokenCosts:
        """What runs the model.

        Raises:
            UsageError: as `layout`.
        """
        return TokenCosts(self._model, self.layout, self._max_batch_tokens)

    @cached_property
    def layout(self) -> Layout:
        """How sequences share a batch: one row of several only where the model was seen to keep them apart.

        Raises:
            UsageError: packing was demanded of a model that does not.
        """
        if self._packing == "off" or (self._packing == "auto" and self._model.device.type == "cpu"):
            return "padded"
        verdict = probe(self._model)
        if self._packing == "on" and not verdict.isolates:
            raise UsageError(verdict.reason, next_step="--score.packing off")
        return verdict.layout

    def nll(self, sequences: Sequence[ToScore]) -> Iterator[tuple[int, Nll | Unscored]]:
        """The longest first: what does not fit the memory fails at once."""
        import torch

        waiting = self.costs.of(sequences)
        while True:
            with torch.inference_mode():  # not around the yield: the caller would run in it, too
                found = next(waiting, None)
            if found is None:
                return
            number, costs = found
            yield number, costs if isinstance(costs, Unscored) else costs.nll


@scorer("hf")
def open_hf(options: Score, directory: Path | None, vocabulary: int) -> HfScorer:
    """Scores by a transformers model, on CPU or GPU: the reference.

    Raises:
        UsageError: transformers or torch is missing, or there are no weights.
    """
    placement = placed(Placement(options.device, options.dtype, options.attention, options.threads), "the scorer `hf`")
    if directory is None:
        raise UsageError("the scorer `hf` needs a model directory", next_step="--score.model DIR")
    identity: dict[str, Json] = {
        "scorer": "hf", "version": 1, "weights": weights_digest(directory), "dtype": placement.dtype,
    }  # fmt: skip
    most = options.max_batch_tokens or BATCH_TOKENS["cuda" if placement.is_on_gpu else "cpu"]
    return HfScorer(partial(load, directory, placement), most, options.packing, identity)
