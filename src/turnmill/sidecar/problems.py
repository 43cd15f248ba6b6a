"""What the service says when it refuses: problem+json (RFC 9457), each with a code that does not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from turnmill.errors import UsageError, quote
from turnmill.http_service import PROBLEM_TYPE, problem

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

_CODES = {404: "not-found", 405: "method-not-allowed"}


class Problem(BaseModel):
    """Why a request was not served."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: str
    """A name of the code that is one in the world."""
    title: str
    """The code in words."""
    status: int
    detail: str
    """What, got, expected: for people."""
    code: str
    """For programs: it does not change."""


PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "Why it is not served.",
        "content": {PROBLEM_TYPE: {"schema": Problem.model_json_schema()}},
    }
}
"""For the description of the API: any route can answer so."""


class Refused(UsageError):
    """A request that is not served.

    Args:
        status: of HTTP.
        code: lower-kebab, what programs look at.
        message: one sentence for people.
        headers: of the response.
    """

    def __init__(self, status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, dict(headers or {})


def problem_response(refused: Refused) -> JSONResponse:
    """The response that says why."""
    said = problem(refused.status, refused.code, refused.message)
    return JSONResponse(said, refused.status, refused.headers, media_type=PROBLEM_TYPE)


def answer_problems(app: FastAPI) -> None:
    """Have an app answer in problems, whatever goes wrong; of a bug nobody outside is told more than that it is one."""

    @app.exception_handler(Refused)
    def refused(_: Request, error: Refused) -> JSONResponse:
        return problem_response(error)

    @app.exception_handler(HTTPException)
    def unrouted(request: Request, error: HTTPException) -> JSONResponse:
        code = _CODES.get(error.status_code, "refused")
        what = f"{request.method} {quote(request.url.path)}: {error.detail}"
        return problem_response(Refused(error.status_code, code, what, headers=error.headers))

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"][1:]))
        what = f"{name}: got {quote(first.get('input'))}; {first['msg']}"
        return problem_response(Refused(400, "parameter-invalid", what))

    @app.exception_handler(Exception)
    def broken(_: Request, __: Exception) -> JSONResponse:
        return problem_response(Refused(500, "internal-error", "the service has a bug; its own log has the traceback"))
