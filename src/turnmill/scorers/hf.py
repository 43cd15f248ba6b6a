"""Scores by a transformers model, on CPU or GPU: the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from turnmill.causal_lm import Placement, load, placed
from turnmill.conversation import Json
from turnmill.errors import UsageError
from turnmill.isolation import Layout, forward_inputs, probe
from turnmill.options import Score
from turnmill.scorers import Nll, ToScore, Unscored, scorer
from turnmill.scorers.weights import weights_digest
from turnmill.tokens.pack import best_fit_decreasing

if TYPE_CHECKING:
    import torch

Packing = Literal["auto", "on", "off"]
LOGITS_AT_ONCE = 1 << 26
"""Numbers in a chunk of logits: positions times vocabulary."""
BATCH_TOKENS = {"cpu": 512, "cuda": 16_384}
"""Tokens of a batch by kind of device: a CPU thread computes no faster with more, and its caches overflow."""
MASKED_ROW_TOKENS = 2_048
"""Of a packed row whose attention is masked: beyond it the masked pairs cost more than padding."""
PROBE_IDS = (1, 2, 3, 5, 8, 13, 21, 34)
PROBE_TOLERANCE = 1e-3
"""How far the logits of the head alone may lie from those of the whole model, of values of about 10."""


class HfScorer:
    """A causal language model of transformers.

    The decoder runs once a batch; its head runs over the wanted positions alone, in chunks, through the model's own
    forward: scaling and capping of logits are the model's. Where a model cannot be cut there (tried once when it is
    loaded), it runs whole, a row at a time.

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
    def runs_whole(self) -> bool:
        """Whether the head cannot be run apart from the decoder."""
        return not self._head_is_apart()

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

        good = []
        for number, one in enumerate(sequences):
            reason = self._beyond(one)
            if reason is None:
                good.append(number)
            else:
                yield number, Unscored(reason)
        for batch in self._batches([len(sequences[number].input_ids) for number in good]):
            numbers = [good[place] for place in batch]
            with torch.inference_mode():
                found = self._within_memory([sequences[number] for number in numbers])
            yield from zip(numbers, found, strict=True)

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Numbers of the sequences that run together."""
        if self.layout == "padded" or self.runs_whole:
            yield from batches_of(lengths, 1 if self.runs_whole else self._max_batch_tokens)
        else:
            yield from rows_of(lengths, self._row_tokens)

    @property
    def _row_tokens(self) -> int:
        """A packed row's: attention without borders of its own pays for all pairs of a row's tokens."""
        takes_borders = "flash" in str(getattr(self._model.config, "_attn_implementation", ""))
        return self._max_batch_tokens if takes_borders else min(self._max_batch_tokens, MASKED_ROW_TOKENS)

    def _beyond(self, one: ToScore) -> str | None:
        """Why the model cannot read a sequence."""
        context = getattr(self._model.config, "max_position_embeddings", None)
        if context and len(one.input_ids) > context:
            return f"{len(one.input_ids):,} tokens; the model sees {context:,}"
        embedded = self._model.get_input_embeddings().weight.shape[0]
        if int(one.input_ids.max(initial=0)) >= embedded:
            return f"token {int(one.input_ids.max())} is not among the model's {embedded:,}"
        return None

    def _within_memory(self, sequences: Sequence[ToScore]) -> list[Nll]:
        """A batch's scores; halves of it in turn where the whole does not fit the device."""
        import torch

        try:
            return self._batch(sequences)
        except torch.OutOfMemoryError:
            if len(sequences) == 1:
                raise
        half = len(sequences) // 2
        return self._within_memory(sequences[:half]) + self._within_memory(sequences[half:])

    def _batch(self, sequences: Sequence[ToScore]) -> list[Nll]:
        import torch

        layout = "padded" if self.runs_whole else self.layout
        inputs = forward_inputs([one.input_ids for one in sequences], layout, self._model.device)
        if layout == "padded" and bool(inputs["attention_mask"].all()):
            del inputs["attention_mask"]
        wanted = [np.flatnonzero(one.wanted) for one in sequences]
        counts = [len(places) for places in wanted]
        if layout == "padded":
            rows = np.repeat(np.arange(len(sequences)), counts)
        else:
            starts = np.cumsum([0, *(len(one.input_ids) for one in sequences[:-1])])
            wanted = [start + places for start, places in zip(starts, wanted, strict=True)]
            rows = np.zeros(sum(counts), dtype=np.int64)
        places = np.concatenate(wanted).astype(np.int64)
        at = [torch.from_numpy(numbers).to(self._model.device) for numbers in (rows, places)]
        values = self._values(inputs, *at).cpu().numpy()
        return np.split(values, np.cumsum(counts)[:-1])

    def _values(self, inputs: dict[str, Any], rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """(wanted,) nats, float32."""
        import torch

        targets = inputs["input_ids"][rows, places]
        if self.runs_whole:
            states = self._model(**inputs, use_cache=False).logits[rows, places - 1]
        else:
            states = self._model.base_model(**inputs, use_cache=False).last_hidden_state[rows, places - 1]
        step = max(1, LOGITS_AT_ONCE // self._vocabulary)
        parts = [torch.empty(0, device=targets.device)]
        for start in range(0, len(targets), step):
            chunk = states[start : start + step]
            logits = chunk if self.runs_whole else self._head(chunk)
            scaled = logits.float()
            hit = scaled.gather(1, targets[start : start + step, None])[:, 0]
            parts.append(torch.logsumexp(scaled, dim=-1) - hit)
        return torch.cat(parts)

    @property
    def _vocabulary(self) -> int:
        return int(self._model.get_output_embeddings().weight.shape[0])

    def _head(self, states: torch.Tensor) -> torch.Tensor:
        """(positions, vocabulary) logits of hidden states, by the model's own forward behind its decoder."""
        from transformers.modeling_outputs import MoeModelOutputWithPast

        output = MoeModelOutputWithPast(last_hidden_state=states[None])
        with _replaced_forward(self._model.base_model, output):
            logits: torch.Tensor = self._model(input_ids=None, inputs_embeds=states[None], use_cache=False).logits
        return logits[0]

    def _head_is_apart(self) -> bool:
        """Whether the head alone gives the logits of the whole model."""
        import torch

        ids = torch.tensor([PROBE_IDS], device=self._model.device) % self._vocabulary
        with torch.inference_mode():
            whole = self._model(input_ids=ids, use_cache=False).logits[0].float()
            try:
                hidden = self._model.base_model(input_ids=ids, use_cache=False).last_hidden_state
                apart = self._head(hidden[0]).float()
            except (AttributeError, TypeError, ValueError, RuntimeError):  # a forward that is built in another way
                return False
        return apart.shape == whole.shape and bool(torch.allclose(apart, whole, atol=PROBE_TOLERANCE, rtol=1e-2))


@contextmanager
def _replaced_forward(module: Any, output: Any) -> Iterator[None]:
    """A module that gives `output` whatever it is asked."""
    module.forward = lambda *_, **__: output
    try:
        yield
    finally:
        del module.forward


def batches_of(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Numbers of sequences in batches whose rows times longest stay within `max_tokens`, the longest first.

    A longer sequence is a batch of its own.
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda number: -lengths[number]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > max_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def rows_of(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Numbers of sequences that share a row of at most `max_tokens`; a longer sequence is a row of its own."""
    short = []
    for number, length in enumerate(lengths):
        if length > max_tokens:
            yield [number]
        else:
            short.append(number)
    for row in best_fit_decreasing([lengths[number] for number in short], max_tokens):
        yield [short[place] for place in row]


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
