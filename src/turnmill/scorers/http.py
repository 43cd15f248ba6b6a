"""Scores by an OpenAI-compatible endpoint that echoes a prompt with its log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from turnmill.conversation import Json
from turnmill.endpoints import Endpoint, Reply, open_pool
from turnmill.errors import UsageError, quote, redacted
from turnmill.options import Score
from turnmill.scorers import Nll, ToScore, Unscored, scorer

PATH = "/completions"
PROBE_IDS = (10, 11, 12, 13)


class HttpScorer:
    """`/completions` with the prompt's token ids, `echo` and `logprobs`.

    Args:
        endpoint: the server and its model.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.identity: dict[str, Json] = {
            "scorer": "http", "version": 1, "model": endpoint.model, "url": redacted(endpoint.url),
        }  # fmt: skip

    def nll(self, sequences: Sequence[ToScore]) -> Iterator[tuple[int, Nll | Unscored]]:
        """In the order of the answers."""
        return self._endpoint.each(self._one, sequences)

    def _one(self, one: ToScore) -> Nll | Unscored:
        reply = self._ask(one.input_ids.tolist())
        if reply.status >= 400:
            return Unscored(f"the endpoint answers {reply.status}: {quote(str(reply.body))}")
        found = echoed(reply.body, len(one.input_ids))
        if found is None:
            return Unscored("the endpoint gave other tokens than it was asked for")
        return (-found[one.wanted]).astype(np.float32)

    def _ask(self, ids: Sequence[int]) -> Reply:
        body = {"prompt": list(ids), "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0}
        return self._endpoint.post(PATH, body)

    def probe(self) -> None:
        """Ask for four tokens.

        Raises:
            UsageError: no answer, or one without the prompt's log-probabilities.
        """
        reply = self._ask(PROBE_IDS)
        if reply.fault is not None:
            raise self._endpoint.unusable(reply.fault, PATH)
        if echoed(reply.body, len(PROBE_IDS)) is None:
            why = "its answer has no log-probabilities of the prompt's tokens: it ignores `echo`, or takes no token ids"
            raise self._endpoint.unusable(why, PATH)


def echoed(answer: Any, tokens: int) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """(tokens,) log-probabilities of the prompt's tokens, the first 0; None where the answer does not hold them."""
    try:
        values = answer["choices"][0]["logprobs"]["token_logprobs"]
    except (KeyError, IndexError, TypeError):
        return None
    if not isinstance(values, list) or not tokens <= len(values) <= tokens + 1 or values[0] is not None:
        return None
    numbers = values[1:tokens]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers):
        return None
    return np.array([0.0, *numbers])


@scorer("http")
def open_http(options: Score, directory: Path | None, vocabulary: int) -> HttpScorer:
    """Scores by an OpenAI-compatible endpoint that echoes a prompt with its log-probabilities.

    Raises:
        UsageError: no URL or model name, urllib3 is missing, or the endpoint cannot score.
    """
    pool = open_pool("the scorer `http`", options.timeout_s, options.concurrency)
    if options.url is None:
        raise UsageError("the scorer `http` needs an endpoint", next_step="--score.url http://127.0.0.1:8000/v1")
    if options.model is None:
        raise UsageError("the scorer `http` needs the model's name at its endpoint", next_step="--score.model NAME")
    endpoint = Endpoint(
        pool, options.url, options.model, purpose="score", otherwise="--score.scorer hf",
        concurrency=options.concurrency,
    )  # fmt: skip
    made = HttpScorer(endpoint)
    made.probe()
    return made
