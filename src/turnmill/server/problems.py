"""What went wrong, as `application/problem+json` (RFC 9457) with a stable code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from turnmill.errors import TurnmillError
from turnmill.http_service import PROBLEM_TYPE, problem
from turnmill.shelf.database import DatabaseUnavailable

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
MAX_FAULTS, MAX_AT_CHARACTERS, MAX_ERROR_CHARACTERS = 20, 100, 300
"""Of what is said to be wrong with a request: it may name a thousand fields, each of them a page long."""


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
        content = problem(self.status_code, self.code, str(self.detail), **self.more)
        return JSONResponse(content, self.status_code, headers=self.headers, media_type=PROBLEM_TYPE)


class ProblemSaid(BaseModel):
    """What is wrong, as RFC 9457 says it."""

    type: str
    title: str
    status: int
    code: str
    """Stable: what a program looks at."""
    detail: str


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route answers when something is wrong, beside what every route may."""
    every = (400, 401, 403, 421, 503)
    schema = {PROBLEM_TYPE: {"schema": ProblemSaid.model_json_schema()}}
    return {status: {"description": _TITLES[status], "content": schema} for status in sorted({*every, *statuses})}


_TITLES = {
    400: "What was asked is not valid.",
    401: "A token is needed, or this one opens nothing.",
    403: "The token, the server or the page's origin does not allow it.",
    404: "There is none of that name.",
    409: "It does not go with what is there.",
    412: "It has changed since.",
    413: "It is too large.",
    421: "Another host was meant.",
    503: "The database does not answer, or too much is asked at once.",
    507: "The server's disk refuses it.",
}


def handle_problems(app: FastAPI) -> None:
    """Let every error of the app be said as a problem."""
    app.add_exception_handler(HTTPException, _said)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(DatabaseUnavailable, _unavailable)
    app.add_exception_handler(TurnmillError, _refused)
    app.add_exception_handler(Exception, _bug)


async def _said(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Problem):
        return _without_places(request, error).response()
    assert isinstance(error, HTTPException)
    code, headers = CODES.get(error.status_code, "request-not-valid"), error.headers
    if error.status_code == 405:
        headers = {"Allow": ", ".join(_methods(request))}
    return Problem(error.status_code, code, str(error.detail), headers=headers).response()


def _methods(request: Request) -> list[str]:
    """What the path can be asked for; the router only knows of the first route that has it."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    said = request.app.openapi()["paths"]
    of_path = [methods for known, methods in said.items() if compile_path(known)[0].match(path)]
    return sorted({method.upper() for methods in of_path for method in methods})


async def _not_valid(_request: Request, error: Exception) -> JSONResponse:
    """The fields that are wrong, without their values, which can be a client's data."""
    assert isinstance(error, RequestValidationError)
    faults = [
        {"at": ".".join(map(str, fault["loc"]))[:MAX_AT_CHARACTERS], "error": fault["msg"][:MAX_ERROR_CHARACTERS]}
        for fault in error.errors()[:MAX_FAULTS]
    ]
    first = faults[0]
    return Problem(400, CODES[400], f"{first['at']}: {first['error']}", faults=faults).response()


async def _unavailable(_request: Request, _error: Exception) -> JSONResponse:
    detail = "the database does not answer; nothing was changed"
    return Problem(503, "database-unavailable", detail, headers={"Retry-After": "5"}).response()


async def _refused(request: Request, error: Exception) -> JSONResponse:
    return _without_places(request, Problem(400, CODES[400], str(error))).response()


def _without_places(request: Request, problem: Problem) -> Problem:
    """The problem without where on the server something lies, whoever wrote its words."""
    hidden = request.app.state.service.without_places
    more = {key: hidden(value) for key, value in problem.more.items()}
    return Problem(problem.status_code, problem.code, hidden(str(problem.detail)), headers=problem.headers, **more)


async def _bug(_request: Request, _error: Exception) -> JSONResponse:
    """Nothing of the error itself: it stands in the server's log."""
    return Problem(500, "internal-error", "the server met an error of its own; its log says which").response()
