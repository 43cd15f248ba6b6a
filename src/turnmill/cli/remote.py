"""A server spoken to by its URL."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from turnmill.cli.shelf_options import TOKEN_VARIABLE, secret
from turnmill.errors import UsageError, quote, redacted, shell_word

TIMEOUT_S = 60.0
SERVER = click.option("--server", metavar="URL", help="A server, with its prefix: http://localhost:8377/v1.")
TOKEN_FILE = click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Holds the access token for the server; default: ${TOKEN_VARIABLE}.",
)


class Remote:
    """A server.

    Args:
        url: of it, with its prefix.
        token_file: holds the access token; None: the environment's, if there is one.

    Raises:
        UsageError: no URL of the web, or urllib3 is not installed.
    """

    def __init__(self, url: str, token_file: Path | None) -> None:
        try:
            import urllib3
        except ModuleNotFoundError:
            raise UsageError("--server needs urllib3", next_step="pip install 'turnmill[serve]'") from None
        if not url.startswith(("http://", "https://")):
            what = f"--server is {quote(redacted(url))}; expected a URL"
            raise UsageError(what, next_step="--server http://localhost:8377/v1")
        self.url = url.rstrip("/")
        token = secret(token_file, TOKEN_VARIABLE)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(headers=headers, timeout=TIMEOUT_S, retries=False)

    def get(self, path: str, **query: Any) -> Any:
        """What a path says.

        Raises:
            UsageError: the server is not there, or says that something is wrong.
        """
        return self._asked("GET", path, fields={name: str(value) for name, value in query.items() if value is not None})

    def post(self, path: str, body: Any = None) -> Any:
        """What the server says to a body of JSON.

        Raises:
            UsageError: as `get`.
        """
        return self._asked("POST", path, **({} if body is None else {"json": body}))

    def delete(self, path: str) -> Any:
        """What the server says to a removal.

        Raises:
            UsageError: as `get`.
        """
        return self._asked("DELETE", path)

    def upload(self, path: str, file: Path, fields: Mapping[str, str]) -> Any:
        """What the server says to a file; it is sent piece by piece.

        Raises:
            UsageError: as `get`, or the file cannot be read.
        """
        boundary = f"turnmill-{file.stat().st_size:x}-{id(self):x}"
        headers = {**self._pool.headers, "Content-Type": f"multipart/form-data; boundary={boundary}"}
        return self._asked("POST", path, body=_form(file, fields, boundary), headers=headers)

    def _asked(self, method: str, path: str, **sent: Any) -> Any:
        from urllib3.exceptions import HTTPError

        try:
            answer = self._pool.request(method, f"{self.url}{path}", **sent)
        except HTTPError as error:
            what = f"no server answers at {redacted(self.url)}: {type(error).__name__}"
            raise UsageError(what, next_step=f"curl -sS {shell_word(redacted(self.url))}") from None
        try:
            said = answer.json() if answer.data else None
        except ValueError:
            said = None
        if answer.status >= 300:
            raise UsageError(_refusal(said, answer.status, redacted(self.url)))
        return said


def _refusal(said: Any, status: int, url: str) -> str:
    if not isinstance(said, dict) or "detail" not in said:
        return f"{url} answers with status {status}, and not as a turnmill server does"
    faults = [f"{fault.get('line', '')}: {fault.get('error', '')}" for fault in said.get("faults", [])[1:4]]
    return "\n".join([f"{said['detail']} ({said.get('code', status)})", *faults])


def _form(file: Path, fields: Mapping[str, str], boundary: str) -> Iterator[bytes]:
    """A multipart form with the fields, and the file behind them."""
    for name, value in fields.items():
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    name = json.dumps(file.name)
    yield f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename={name}\r\n\r\n'.encode()
    with file.open("rb") as opened:
        while chunk := opened.read(1 << 16):
            yield chunk
    yield f"\r\n--{boundary}--\r\n".encode()
