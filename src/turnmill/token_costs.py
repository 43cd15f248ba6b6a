"""What tokens cost a causal language model: its decoder once a batch, its head over the wanted positions alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.isolation import Layout, forward_inputs
from turnmill.scorers import ToScore, Unscored
from turnmill.tokens.pack import best_fit_decreasing

if TYPE_CHECKING:
    import torch

LOGITS_AT_ONCE = 1 << 26
"""Numbers in a chunk of logits: positions times vocabulary."""
BATCH_TOKENS = {"cpu": 512, "cuda": 16_384}
"""Tokens of a batch by kind of device: a CPU thread computes no faster with more, and its caches overflow."""
MASKED_ROW_TOKENS = 2_048
"""Of a packed row whose attention is masked: beyond it the masked pairs cost more than padding."""
PROBE_IDS = (1, 2, 3, 5, 8, 13, 21, 34)
PROBE_TOLERANCE = 1e-3
"""How far the logits of the head alone may lie from those of the whole model, of values of about 10."""


class Costs(NamedTuple):
    """What the wanted tokens of a sequence cost, given the tokens before them in their own sequence alone."""

    nll: NDArray[np.float32]
    """(wanted tokens,) nats."""
    entropy: NDArray[np.float32]
    """(wanted tokens,) nats of the distribution that each was predicted with; none where it was not asked for."""


class TokenCosts:
    """Runs a loaded model over sequences.

    The head runs in chunks, through the model's own forward: scaling and capping of logits are the model's. Where a
    model cannot be cut there (tried once), it runs whole, a row at a time. Logarithms are taken in float32.

    Args:
        model: in evaluation mode, on its device; gradients are the caller's to turn off.
        layout: how sequences share a batch; one row of several only where the model was seen to keep them apart.
        max_batch_tokens: rows times longest of a batch; None: by the device.
        entropy: whether entropies are asked for.
    """

    def __init__(
        self, model: Any, layout: Layout = "padded", max_batch_tokens: int | None = None, *, entropy: bool = False
    ) -> None:
        self.layout = layout
        self._model = model
        self._max_batch_tokens = max_batch_tokens or BATCH_TOKENS["cuda" if model.device.type == "cuda" else "cpu"]
        self._entropy = entropy

    @property
    def device(self) -> Any:
        """Where the model lies."""
        return self._model.device

    @cached_property
    def runs_whole(self) -> bool:
        """Whether the head cannot be run apart from the decoder."""
        return not self._head_is_apart()

    def of(self, sequences: Sequence[ToScore]) -> Iterator[tuple[int, Costs | Unscored]]:
        """Of every sequence its number and costs, the longest first: what does not fit the memory fails at once."""
        good = []
        for number, one in enumerate(sequences):
            reason = self._beyond(one)
            if reason is None:
                good.append(number)
            else:
                yield number, Unscored(reason)
        for batch in self._batches([len(sequences[number].input_ids) for number in good]):
            numbers = [good[place] for place in batch]
            yield from zip(numbers, self._within_memory([sequences[number] for number in numbers]), strict=True)

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

    def _within_memory(self, sequences: Sequence[ToScore]) -> list[Costs]:
        """A batch's costs; halves of it in turn where the whole does not fit the device."""
        import torch

        try:
            return self._batch(sequences)
        except torch.OutOfMemoryError:
            if len(sequences) == 1:
                raise
        half = len(sequences) // 2
        return self._within_memory(sequences[:half]) + self._within_memory(sequences[half:])

    def _batch(self, sequences: Sequence[ToScore]) -> list[Costs]:
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
        nll, entropy = (values.cpu().numpy() for values in self._values(inputs, *at))
        ends = np.cumsum(counts)[:-1]
        apart = np.split(entropy, ends) if self._entropy else [entropy] * len(sequences)
        return [Costs(*both) for both in zip(np.split(nll, ends), apart, strict=True)]

    def _values(
        self, inputs: dict[str, Any], rows: torch.Tensor, places: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """(wanted,) nats and (wanted,) entropies, float32; none of these where they were not asked for."""
        import torch

        targets = inputs["input_ids"][rows, places]
        if self.runs_whole:
            states = self._model(**inputs, use_cache=False).logits[rows, places - 1]
        else:
            states = self._model.base_model(**inputs, use_cache=False).last_hidden_state[rows, places - 1]
        step = max(1, LOGITS_AT_ONCE // self._vocabulary)
        nll = entropy = [torch.empty(0, device=targets.device)]
        for start in range(0, len(targets), step):
            chunk = states[start : start + step]
            logits = (chunk if self.runs_whole else self._head(chunk)).float()
            hit = logits.gather(1, targets[start : start + step, None])[:, 0]
            nll = [*nll, torch.logsumexp(logits, dim=-1) - hit]
            if self._entropy:
                entropy = [*entropy, torch.special.entr(torch.softmax(logits, dim=-1)).sum(-1)]
        return torch.cat(nll), torch.cat(entropy)

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
        with torch.no_grad():
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
    own = module.__dict__.get("forward")  # a trainer may have put one there
    module.forward = lambda *_, **__: output
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


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
