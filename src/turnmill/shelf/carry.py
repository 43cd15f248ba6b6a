"""Carrying a dataset to a sidecar with a job, and asking what became of it; a busy or restarting one is asked again."""

from __future__ import annotations

import base64
import json
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote as url_quote
from urllib.parse import urlsplit

from turnmill.errors import UsageError, quote, redacted, shell_word

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

    from turnmill.conversation import Json

READ_BYTES = 3 << 16
"""Of a file that are encoded at once: a multiple of three."""
BUSY = (502, 503, 504)
"""Statuses of a service that may answer later."""
BACKOFF_S, MAX_BACKOFF_S = 0.25, 8.0
CONNECT_S, ANSWER_S = 5.0, 120.0
"""Seconds that a connection, and an answer, may take."""
START_DEADLINE_S, DEADLINE_S = 300.0, 30.0
FETCHED_BYTES = 1 << 18
MAX_DETAIL_CHARACTERS = 2_000


class SidecarDown(UsageError):
    """Nobody answers at the sidecar's address, or only that he cannot now: later, somebody may."""


class SidecarRefused(UsageError):
    """The sidecar says no, and would say it again.

    Args:
        status: of HTTP.
        code: lower-kebab, as the sidecar gives it.
        message: its words.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code

    def __reduce__(self) -> tuple[Any, ...]:
        return (SidecarRefused, (self.status, self.code, self.message))


@dataclass(frozen=True, slots=True)
class _Body:
    """A JSON body that is made as it is sent, once more for each try."""

    head: bytes
    file: BinaryIO | None = None
    """Its content goes behind the head, in base64."""
    tail: bytes = b""

    @property
    def size(self) -> int:
        """Bytes."""
        content = 0 if self.file is None else -(-os.fstat(self.file.fileno()).st_size // 3) * 4
        return len(self.head) + content + len(self.tail)

    def chunks(self) -> Iterator[bytes]:
        """All of it."""
        yield self.head
        if self.file is not None:
            self.file.seek(0)
            while read := self.file.read(READ_BYTES):
                yield base64.b64encode(read)
        yield self.tail


class Carrier:
    """A sidecar, as the one who brings it jobs sees it.

    Args:
        url: of the sidecar, without a path behind it but that of a proxy.
        secret: that it shares; None: it needs none.

    Raises:
        UsageError: the address is none of HTTP, or urllib3 is missing.
    """

    def __init__(self, url: str, secret: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            expected = "expected http://HOST:PORT, or https"
            raise UsageError(f"the sidecar's address is {quote(redacted(url))}; {expected}")
        try:
            import urllib3
        except ImportError:
            raise UsageError("a sidecar is asked with urllib3", next_step="pip install 'turnmill[serve]'") from None
        self.url = url.rstrip("/")
        self._headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        self._pool = urllib3.PoolManager(retries=False, maxsize=2)

    def __enter__(self) -> Carrier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._pool.clear()

    def start(
        self,
        job: str,
        filename: str,
        content: Path | bytes | Iterable[bytes] | None,
        options: Mapping[str, Json],
        *,
        deadline_s: float = START_DEADLINE_S,
    ) -> dict[str, Any]:
        """Start a run of a dataset, once however often it is asked for; gives the run.

        Args:
            job: the run's id there.
            filename: NAME.jsonl.
            content: a file, its bytes, or its lines without their ends; None: the sidecar has it stored.
            options: what the run is to do, as the sidecar names it.
            deadline_s: seconds in which it is tried.

        Raises:
            SidecarDown: nobody took it in time.
            SidecarRefused: the sidecar does not take it.
        """
        said = {**options, "job": job, "dataset": filename}
        with _opened(content) as file:
            if file is None:
                body = _Body(json.dumps(said).encode())
            else:
                body = _Body(json.dumps(said).encode()[:-1] + b', "dataset_content": "', file, b'"}')
            return self._json("POST", "/training/job_start", deadline_s, body)

    def status(self, job: str, *, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """A run, and how far it is; errors as those of `start`."""
        return self._json("GET", _of(job), deadline_s)

    def metrics(self, job: str, after: int = -1, *, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """A run's `metrics` behind a step, and whether the answer is `truncated`; errors as those of `start`."""
        return self._json("GET", f"{_of(job)}/metrics?after={after}", deadline_s)

    def log(self, job: str, offset: int = 0, *, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """The `text` of a run's log from a byte on, and the `next_offset`; errors as those of `start`."""
        return self._json("GET", f"{_of(job)}/log?offset={offset}", deadline_s)

    def cancel(self, job: str, *, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """Have a run end; gives the run, which may work for some seconds yet; errors as those of `start`."""
        return self._json("POST", f"{_of(job)}/cancel", deadline_s, _Body(b""))

    def artefacts(self, job: str, *, deadline_s: float = DEADLINE_S) -> list[dict[str, Any]]:
        """`path`, `size_bytes` and `sha256` of the files that a run published; errors as those of `start`."""
        found: list[dict[str, Any]] = self._json("GET", f"{_of(job)}/artefacts", deadline_s)["artefacts"]
        return found

    def fetch(self, job: str, path: str, target: BinaryIO, *, deadline_s: float = DEADLINE_S) -> None:
        """Write a file that a run published to an open one; errors as those of `start`, before anything is written."""
        response = self._asked("GET", f"{_of(job)}/artefacts/{url_quote(path)}", deadline_s, None)
        with self._saying(response):
            for chunk in response.stream(FETCHED_BYTES):
                target.write(chunk)

    def is_ready(self) -> bool:
        """Whether it takes jobs now; asked once, for some seconds.

        Raises:
            SidecarRefused: it is there, and does not know the secret.
        """
        try:
            return bool(self._json("GET", "/readyz", 0))
        except SidecarDown:
            return False

    def _json(self, method: str, path: str, deadline_s: float, body: _Body | None = None) -> dict[str, Any]:
        response = self._asked(method, path, deadline_s, body)
        with self._saying(response):
            try:
                found: dict[str, Any] = json.loads(response.read())
            except ValueError:
                raise self._down(f"it answers {response.status} without JSON: another service is there") from None
        return found

    def _asked(self, method: str, path: str, deadline_s: float, body: _Body | None) -> BaseHTTPResponse:
        """The answer, good or a refusal, once there is one.

        Raises:
            SidecarDown: there was none in time.
            SidecarRefused: it is a refusal.
        """
        end, pause = time.monotonic() + deadline_s, BACKOFF_S
        while True:
            left = max(end - time.monotonic(), CONNECT_S)
            found = self._tried(method, path, left, body)
            if not isinstance(found, str):
                return found
            wait = pause * random.uniform(0.5, 1)  # many who ask do not ask together
            if time.monotonic() + wait > end:
                raise self._down(found)
            time.sleep(wait)
            pause = min(2 * pause, MAX_BACKOFF_S)

    def _tried(self, method: str, path: str, left_s: float, body: _Body | None) -> BaseHTTPResponse | str:
        """The answer; why there is none where it may come later.

        Raises:
            SidecarRefused: it is a refusal.
        """
        import urllib3
        from urllib3.exceptions import HTTPError

        headers = dict(self._headers)
        if body is not None:
            headers |= {"Content-Type": "application/json", "Content-Length": str(body.size)}
        try:
            response = self._pool.request(
                method, f"{self.url}{path}", body=None if body is None else body.chunks(), headers=headers,
                timeout=urllib3.Timeout(connect=min(CONNECT_S, left_s), read=min(ANSWER_S, left_s)),
                redirect=False, preload_content=False,
            )  # fmt: skip
            if response.status < 300:
                return response
            with response:
                said = response.read(1 << 16, decode_content=True)
        except HTTPError as problem:
            return _reason(problem)
        code, detail = _problem(said)
        if response.status in BUSY:
            return f"it answers {response.status}: {detail}"
        raise SidecarRefused(response.status, code, f"the sidecar at {redacted(self.url)} refuses: {detail}")

    @contextmanager
    def _saying(self, response: BaseHTTPResponse) -> Iterator[None]:
        """The answer is read here; it may break off."""
        from urllib3.exceptions import HTTPError

        try:
            yield
        except HTTPError as problem:
            response.close()
            raise self._down(f"its answer broke off: {_reason(problem)}") from problem
        else:
            response.release_conn()

    def _down(self, why: str) -> SidecarDown:
        what = f"the sidecar at {redacted(self.url)} is down: {why}"
        port = urlsplit(self.url).port
        next_step = "turnmill sidecar --data DIR --models NAME=DIR" + (f" --port {port}" if port else "")
        return SidecarDown(what, next_step=next_step)


def _of(job: str) -> str:
    return f"/training/jobs/{url_quote(job, safe='')}"


def _opened(content: Path | bytes | Iterable[bytes] | None) -> Any:
    """The content in an open file, which is read as often as it is tried."""
    if content is None:
        return nullcontext()
    if isinstance(content, Path):
        return _opened_file(content)
    return _spooled([content] if isinstance(content, bytes) else (line + b"\n" for line in content))


@contextmanager
def _opened_file(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as problem:
        what = f"cannot read {path}: {problem.strerror}"
        raise UsageError(what, next_step=f"ls -l {shell_word(path)}") from problem
    with file:
        yield file


@contextmanager
def _spooled(chunks: Iterable[bytes]) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile(prefix="turnmill-carry-") as file:
        file.writelines(chunks)
        file.flush()
        yield file


def _problem(said: bytes) -> tuple[str, str]:
    """Code and detail of a problem; of what is none its beginning."""
    try:
        found = json.loads(said)
        return str(found["code"]), str(found["detail"])[:MAX_DETAIL_CHARACTERS]
    except (ValueError, KeyError, TypeError):
        return "unknown", quote(said.decode("utf-8", "replace"))


def _reason(problem: Exception) -> str:
    """Why there was no answer, without the address and the connection's own name."""
    return str(getattr(problem, "reason", None) or problem).rpartition("): ")[2] or type(problem).__name__
