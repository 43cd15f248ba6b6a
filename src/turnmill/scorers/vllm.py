"""Scores by vLLM, offline, as the log-probabilities of prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from turnmill.conversation import Json
from turnmill.errors import UsageError
from turnmill.options import Score
from turnmill.scorers import Nll, ToScore, Unscored, scorer
from turnmill.scorers.weights import weights_digest


class VllmScorer:
    """An offline engine of vLLM; it makes its own batches.

    Args:
        engine: `vllm.LLM`.
        sampling: `vllm.SamplingParams` that ask for prompt log-probabilities.
        identity: see `Scorer`.
    """

    def __init__(self, engine: Any, sampling: Any, identity: dict[str, Json]) -> None:
        self._engine, self._sampling = engine, sampling
        self.identity = identity

    def nll(self, sequences: Sequence[ToScore]) -> Iterator[tuple[int, Nll | Unscored]]:
        """In the order given, when all are done."""
        prompts = [{"prompt_token_ids": one.input_ids.tolist()} for one in sequences]
        outputs = self._engine.generate(prompts, self._sampling, use_tqdm=False)
        for number, (one, output) in enumerate(zip(sequences, outputs, strict=True)):
            yield number, prompt_nll(one, output.prompt_logprobs)


def prompt_nll(one: ToScore, found: Sequence[Mapping[int, Any] | None] | None) -> Nll | Unscored:
    """The wanted tokens' scores out of vLLM's `prompt_logprobs`: a mapping of token id to log-probability a place."""
    if found is None or len(found) != len(one.input_ids):
        return Unscored("vLLM gave no log-probabilities of this prompt")
    values = []
    for place in np.flatnonzero(one.wanted).tolist():
        entry = (found[place] or {}).get(int(one.input_ids[place]))
        if entry is None:
            return Unscored(f"vLLM gave no log-probability of token {place}")
        values.append(-entry.logprob)
    return np.array(values, dtype=np.float32)


@scorer("vllm")
def open_vllm(options: Score, directory: Path | None, vocabulary: int) -> VllmScorer:
    """Scores by vLLM, offline, as the log-probabilities of prompts.

    Raises:
        UsageError: vLLM is not installed, or there are no weights.
    """
    try:
        import vllm  # type: ignore[import-not-found]  # an extra that a user may have
    except ImportError:
        raise UsageError("the scorer `vllm` needs vLLM, which is not installed", next_step="pip install vllm") from None
    if directory is None:
        raise UsageError("the scorer `vllm` needs a model directory", next_step="--score.model DIR")
    engine = vllm.LLM(model=str(directory), dtype=options.dtype, enable_prefix_caching=False)
    sampling = vllm.SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=0)
    identity: dict[str, Json] = {
        "scorer": "vllm", "version": 1, "weights": weights_digest(directory), "dtype": options.dtype,
    }  # fmt: skip
    return VllmScorer(engine, sampling, identity)
