"""What went wrong, as `application/problem+json` (RFC 9457) with a stable code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from turnmill.errors import TurnmillError
from turnmill.shelf.database import DatabaseUnavailable

MEDIA_TYPE = "application/problem+json"
CODES = {
    400: "request-not-valid",
    401: "token-missing",
    403: "not-allowed",
    404: "not-found",
    405: "method-not-allowed",
    409: "conflict",
    413: "too-large",
    503: "not-available",
}
"""Of a status that comes without a code of its own."""


class Problem(HTTPException):
    """An answer that says what is wrong.

    Args:
        status: of HTTP.
        code: what is wrong, lower-kebab; part of the interface.
        detail: what, where, got, expected.
        more: further members of the answer.
        headers: of the answer.
    """

    def __init__(
        self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.code = code
        self.more = more

    def response(self) -> JSONResponse:
        """The answer."""
        title = self.code.replace("-", " ").capitalize()
        said = {"type": "about:blank", "title": title, "status": self.status_code, "code": self.code}
        content = {**said, "detail": self.detail, **self.more}
        return JSONResponse(content, self.status_code, headers=self.headers, media_type=MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Let every error of the app be said as a problem."""
    app.add_exception_handler(HTTPException, _said)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(DatabaseUnavailable, _unavailable)
    app.add_exception_handler(TurnmillError, _refused)
    app.add_exception_handler(Exception, _bug)


async def _said(_request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Problem):
        return error.response()
    assert isinstance(error, HTTPException)
    code = CODES.get(error.status_code, "request-not-valid")
    return Problem(error.status_code, code, str(error.detail), headers=error.headers).response()


async def _not_valid(_request: Request, error: Exception) -> JSONResponse:
    """The fields that are wrong, without their values, which can be a client's data."""
    assert isinstance(error, RequestValidationError)
    faults = [{"at": ".".join(map(str, fault["loc"])), "error": fault["msg"]} for fault in error.errors()]
    first = faults[0]
    return Problem(400, CODES[400], f"{first['at']}: {first['error']}", faults=faults).response()


async def _unavailable(_request: Request, _error: Exception) -> JSONResponse:
    detail = "the database does not answer; nothing was changed"
    return Problem(503, "database-unavailable", detail, headers={"Retry-After": "5"}).response()


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    return Problem(400, CODES[400], str(error)).response()


async def _bug(_request: Request, _error: Exception) -> JSONResponse:
    """Nothing of the error itself: it stands in the server's log."""
    return Problem(500, "internal-error", "the server met an error of its own; its log says which").response()
