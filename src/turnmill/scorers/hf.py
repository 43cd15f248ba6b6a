"""Scores by a transformers model, on CPU or GPU: the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
from turnmill.options import Score
from turnmill.scorers import Nll, ToScore, Unscored, scorer
from turnmill.scorers.weights import weights_digest

if TYPE_CHECKING:
    import torch

LOGITS_AT_ONCE = 1 << 26
"""Numbers in a chunk of logits: positions times vocabulary."""
BATCH_TOKENS = {"cpu": 512, "cuda": 16_384}
"""Tokens of a batch by kind of device: a CPU thread computes no faster with more, and its caches overflow."""
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
        identity: see `Scorer`.
    """

    def __init__(self, load: Callable[[], Any], max_batch_tokens: int, identity: dict[str, Json]) -> None:
        self._load = load
        self._max_batch_tokens = max_batch_tokens
        self.identity = identity

    @cached_property
    def _model(self) -> Any:
        return self._load()

    @cached_property
    def runs_whole(self) -> bool:
        """Whether the head cannot be run apart from the decoder."""
        return not self._head_is_apart()

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
        most = 1 if self.runs_whole else self._max_batch_tokens
        for batch in batches_of([len(sequences[number].input_ids) for number in good], most):
            numbers = [good[place] for place in batch]
            with torch.inference_mode():
                found = self._within_memory([sequences[number] for number in numbers])
            yield from zip(numbers, found, strict=True)

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

        device = self._model.device
        longest = max(len(one.input_ids) for one in sequences)
        ids = np.zeros((len(sequences), longest), dtype=np.int64)
        mask = np.zeros((len(sequences), longest), dtype=np.int64)
        for row, one in enumerate(sequences):
            ids[row, : len(one.input_ids)] = one.input_ids
            mask[row, : len(one.input_ids)] = 1
        wanted = [np.flatnonzero(one.wanted) for one in sequences]
        rows = torch.from_numpy(np.repeat(np.arange(len(sequences)), [len(places) for places in wanted])).to(device)
        places = torch.from_numpy(np.concatenate(wanted).astype(np.int64)).to(device)
        inputs = torch.from_numpy(ids).to(device)
        padding = torch.from_numpy(mask).to(device) if (mask == 0).any() else None
        values = self._values(inputs, padding, rows, places).cpu().numpy()
        return np.split(values, np.cumsum([len(places) for places in wanted])[:-1])

    def _values(self, ids: torch.Tensor, mask: torch.Tensor | None, rows: Any, places: Any) -> torch.Tensor:
        """(wanted,) nats, float32."""
        import torch

        targets = ids[rows, places]
        if self.runs_whole:
            logits = self._model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            states = logits[rows, places - 1]
        else:
            hidden = self._model.base_model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
            states = hidden[rows, places - 1]
        step = max(1, LOGITS_AT_ONCE // self._vocabulary)
        parts = [torch.empty(0, device=ids.device)]
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
        from transformers.modeling_outputs import BaseModelOutputWithPast

        output = BaseModelOutputWithPast(last_hidden_state=states[None])
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


@scorer("hf")
def open_hf(options: Score, directory: Path | None, vocabulary: int) -> HfScorer:
    """Scores by a transformers model, on CPU or GPU: the reference.

    Raises:
        UsageError: transformers or torch is missing, or there are no weights.
    """
    try:
        import torch
        import transformers  # noqa: F401  # told here, before hours of other work
    except ImportError as missing:
        raise UsageError(
            f"the scorer `hf` needs {missing.name}, which is not installed", next_step="pip install 'turnmill[hf]'"
        ) from None
    if directory is None:
        raise UsageError("the scorer `hf` needs a model directory", next_step="--score.model DIR")
    device = options.device if options.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    dtype = options.dtype if options.dtype != "auto" else "bfloat16" if device.startswith("cuda") else "float32"
    identity: dict[str, Json] = {
        "scorer": "hf", "version": 1, "weights": weights_digest(directory), "dtype": dtype,
    }  # fmt: skip
    most = options.max_batch_tokens or BATCH_TOKENS.get(device.partition(":")[0], BATCH_TOKENS["cuda"])
    return HfScorer(partial(_loaded, directory, device, dtype, options.threads), most, identity)


def _loaded(directory: Path, device: str, dtype: str, threads: int | None) -> Any:
    """The model of a directory, in evaluation mode.

    Raises:
        UsageError: it cannot be loaded.
    """
    import torch
    import transformers
    from safetensors import SafetensorError

    if threads is not None:
        torch.set_num_threads(threads)
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs
    try:
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=getattr(torch, dtype))
        return model.to(device).eval()
    except (OSError, ValueError, RuntimeError, SafetensorError) as problem:
        what = f"cannot load the model in {directory}: {str(problem).splitlines()[0]}"
        raise UsageError(what, next_step=f"ls {shell_word(directory)}") from problem
