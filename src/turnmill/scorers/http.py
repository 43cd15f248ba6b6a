"""Scores by an OpenAI-compatible endpoint that echoes a prompt with its log-probabilities."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from turnmill.conversation import Json
from turnmill.errors import UsageError, quote, redacted
from turnmill.options import Score
from turnmill.scorers import Nll, ToScore, Unscored, scorer

if TYPE_CHECKING:
    from urllib3 import PoolManager

KEY_VARIABLES = ("TURNMILL_API_KEY", "OPENAI_API_KEY")
TRIES = 6
BACKOFF_S = 0.5
TRIED_AGAIN = (408, 409, 429, 500, 502, 503, 504)
"""Statuses of an endpoint that may answer later."""
PROBE_IDS = (10, 11, 12, 13)


class HttpScorer:
    """`/completions` with the prompt's token ids, `echo` and `logprobs`.

    Args:
        pool: connections, which try again by themselves.
        url: of the endpoint, up to `/v1`.
        model: its name there.
        concurrency: requests at once.
    """

    def __init__(self, pool: PoolManager, url: str, model: str, concurrency: int) -> None:
        self._pool, self._url, self._model = pool, f"{url.rstrip('/')}/completions", model
        self._concurrency = concurrency
        self.identity: dict[str, Json] = {"scorer": "http", "version": 1, "model": model, "url": redacted(url)}

    def nll(self, sequences: Sequence[ToScore]) -> Iterator[tuple[int, Nll | Unscored]]:
        """In the order of the answers."""
        with ThreadPoolExecutor(self._concurrency) as threads:
            asked = {threads.submit(self._one, one): number for number, one in enumerate(sequences)}
            for done in as_completed(asked):
                yield asked[done], done.result()

    def _one(self, one: ToScore) -> Nll | Unscored:
        status, answer = self._ask(one.input_ids.tolist())
        if status >= 400:
            if status in (401, 403, 404):
                raise self._unusable(f"it answers {status}: {quote(str(answer))}")
            return Unscored(f"the endpoint answers {status}: {quote(str(answer))}")
        found = echoed(answer, len(one.input_ids))
        if found is None:
            return Unscored("the endpoint gave other tokens than it was asked for")
        return (-found[one.wanted]).astype(np.float32)

    def _ask(self, ids: Sequence[int]) -> tuple[int, Any]:
        from urllib3.exceptions import HTTPError

        body = {"model": self._model, "prompt": list(ids), "max_tokens": 1, "echo": True, "logprobs": 1,
                "temperature": 0}  # fmt: skip
        try:
            response = self._pool.request("POST", self._url, json=body, headers=_headers())
        except HTTPError as problem:
            raise self._unusable(f"no answer after {TRIES} tries: {quote(str(problem))}") from problem
        try:
            return response.status, json.loads(response.data)
        except ValueError:
            return max(response.status, 400), response.data[:80]

    def probe(self) -> None:
        """Ask for four tokens.

        Raises:
            UsageError: no answer, or one without the prompt's log-probabilities.
        """
        status, answer = self._ask(PROBE_IDS)
        if status >= 400:
            raise self._unusable(f"it answers {status}: {quote(str(answer))}")
        if echoed(answer, len(PROBE_IDS)) is None:
            raise self._unusable(
                "its answer has no log-probabilities of the prompt's tokens: it ignores `echo`, or takes no token ids"
            )

    def _unusable(self, why: str) -> UsageError:
        what = f"{redacted(self._url)} cannot score with model {self._model!r}: {why}"
        return UsageError(what, next_step="--score.scorer hf")


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


def _headers() -> dict[str, str]:
    key = next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), None)
    return {"Authorization": f"Bearer {key}"} if key else {}


@scorer("http")
def open_http(options: Score, directory: Path | None, vocabulary: int) -> HttpScorer:
    """Scores by an OpenAI-compatible endpoint that echoes a prompt with its log-probabilities.

    Raises:
        UsageError: no URL or model name, urllib3 is missing, or the endpoint cannot score.
    """
    try:
        import urllib3
    except ImportError:
        raise UsageError("the scorer `http` needs urllib3", next_step="pip install 'turnmill[http]'") from None
    if options.url is None:
        raise UsageError("the scorer `http` needs an endpoint", next_step="--score.url http://127.0.0.1:8000/v1")
    if options.model is None:
        raise UsageError("the scorer `http` needs the model's name at its endpoint", next_step="--score.model NAME")
    again = urllib3.Retry(
        TRIES - 1,
        backoff_factor=BACKOFF_S,
        backoff_jitter=BACKOFF_S,
        status_forcelist=TRIED_AGAIN,
        allowed_methods=None,
        raise_on_status=False,
        redirect=False,
    )
    pool = urllib3.PoolManager(
        retries=again, timeout=urllib3.Timeout(total=options.timeout_s), maxsize=options.concurrency
    )
    made = HttpScorer(pool, options.url, options.model, options.concurrency)
    made.probe()
    return made
