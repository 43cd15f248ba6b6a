"""An OpenAI-compatible endpoint over HTTP: it is asked again while it is busy, and its key stays in the header."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from turnmill.conversation import Json
from turnmill.errors import UsageError, quote, redacted

if TYPE_CHECKING:
    from urllib3 import PoolManager

KEY_VARIABLES = ("TURNMILL_API_KEY", "OPENAI_API_KEY")
TRIES = 6
BACKOFF_S = 0.5
TRIED_AGAIN = (408, 409, 429, 500, 502, 503, 504)
"""Statuses of an endpoint that may answer later."""
REFUSED = (401, 403, 404)
"""Statuses of an endpoint that will answer no other question either."""

Asked = TypeVar("Asked")
Found = TypeVar("Found")


class Reply(NamedTuple):
    """What came back."""

    status: int
    """Of HTTP; 400 where the body is no JSON."""
    body: Any
    """A JSON value, or the beginning of what is none."""

    @property
    def fault(self) -> str | None:
        """Why there is no answer, None where there is one."""
        return f"it answers {self.status}: {quote(_text(self.body))}" if self.status >= 400 else None


class Endpoint:
    """A server and a model of it.

    Args:
        pool: connections, which try again by themselves.
        url: up to `/v1`.
        model: its name there.
        purpose: what it is asked for, for errors (`score`).
        otherwise: the command to type where it cannot be used.
        concurrency: requests at once.
    """

    def __init__(
        self, pool: PoolManager, url: str, model: str, *, purpose: str, otherwise: str, concurrency: int = 8
    ) -> None:
        self.url, self.model, self.concurrency = url.rstrip("/"), model, concurrency
        self._pool, self._purpose, self._otherwise = pool, purpose, otherwise

    def post(self, path: str, body: dict[str, Json]) -> Reply:
        """The reply to a request with a JSON body.

        Raises:
            UsageError: nothing answers, or nothing will answer.
        """
        return self._request("POST", path, {"model": self.model, **body})

    def get(self, path: str) -> Reply:
        """The reply to a request without a body.

        Raises:
            UsageError: nothing answers, or nothing will answer.
        """
        return self._request("GET", path, None)

    def _request(self, method: str, path: str, body: Json) -> Reply:
        from urllib3.exceptions import HTTPError

        try:
            response = self._pool.request(method, f"{self.url}{path}", json=body, headers=_headers())
        except HTTPError as problem:
            why = str(getattr(problem, "reason", None) or problem).rpartition("): ")[2]
            raise self.unusable(f"no answer after {TRIES} tries: {quote(why)}", path) from problem
        try:
            reply = Reply(response.status, json.loads(response.data))
        except ValueError:
            reply = Reply(max(response.status, 400), response.data[:80])
        if reply.status in REFUSED:
            raise self.unusable(reply.fault or "", path)
        return reply

    def unusable(self, why: str, path: str) -> UsageError:
        """The error of an endpoint that cannot be used."""
        model = f" with model {self.model!r}" if self.model else ""
        what = f"{redacted(self.url)}{path} cannot {self._purpose}{model}: {why}"
        return UsageError(what, next_step=self._otherwise)

    def each(self, ask: Callable[[Asked], Found], asked: Sequence[Asked]) -> Iterator[tuple[int, Found]]:
        """Number and what was found of each, in the order of the answers; where one raises, no further one is begun."""
        with ThreadPoolExecutor(self.concurrency) as threads:
            waiting = {threads.submit(ask, one): number for number, one in enumerate(asked)}
            try:
                for done in as_completed(waiting):
                    yield waiting[done], done.result()
            finally:
                for one in waiting:
                    one.cancel()


def open_pool(who: str, timeout_s: float, concurrency: int) -> PoolManager:
    """Connections that try again while a server is busy or away.

    Args:
        who: what needs them, for the error.
        timeout_s: of one try.
        concurrency: requests at once.

    Raises:
        UsageError: urllib3 is missing.
    """
    try:
        import urllib3
    except ImportError:
        raise UsageError(f"{who} needs urllib3", next_step="pip install 'turnmill[http]'") from None
    again = urllib3.Retry(
        TRIES - 1,
        backoff_factor=BACKOFF_S,
        backoff_jitter=BACKOFF_S,
        status_forcelist=TRIED_AGAIN,
        allowed_methods=None,
        raise_on_status=False,
        redirect=False,
    )
    return urllib3.PoolManager(retries=again, timeout=urllib3.Timeout(total=timeout_s), maxsize=concurrency)


def _headers() -> dict[str, str]:
    key = next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), None)
    return {"Authorization": f"Bearer {key}"} if key else {}


def _text(body: Any) -> str:
    return body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body)
