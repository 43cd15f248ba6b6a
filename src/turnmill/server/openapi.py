"""The description of the interface: its problems and scopes, which FastAPI does not know of, are added to its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from turnmill.http_service import PROBLEM_TYPE
from turnmill.server.answers import ProblemAnswer
from turnmill.server.guard import OPEN, only_reads

PROBLEM = {"$ref": "#/components/schemas/Problem"}
ALWAYS = {
    "400": "request-not-valid",
    "401": "token-missing, token-not-valid",
    "403": "scope-too-small, read-only, origin-not-allowed",
    "408": "body-late",
    "413": "too-large",
    "415": "encoding-not-taken",
    "421": "host-not-allowed",
    "503": "database-unavailable",
}
"""Status → codes of what any request behind the guard can be answered."""
FASTAPI_NOT_VALID = "422"
"""What FastAPI says of a request that is not valid; here it is 400."""


def operation_id(route: APIRoute) -> str:
    """What a generated client calls a route: its noun and its function."""
    return f"{route.tags[0] if route.tags else 'turnmill'}_{route.name}"


def describe(app: FastAPI) -> None:
    """Let the app's description say its problems, scopes and tokens."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # how FastAPI lets it be extended


def _described(app: FastAPI) -> dict[str, Any]:
    said = get_openapi(
        title=app.title, version=app.version, summary="Datasets on a shelf, and jobs over them.", routes=app.routes
    )
    components = said.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schema = ProblemAnswer.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schema.pop("$defs"))
    schemas["Problem"] = schema
    components["schemas"] = dict(sorted(schemas.items()))
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    for path, method, operation in operations(said):
        _say_problems(path, operation)
        if path not in OPEN:
            operation["security"] = [{"bearer": []}, {}]
            operation.setdefault("x-scope", "read" if only_reads(method.upper(), path) else "write")
    return said


def operations(said: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and description of everything that can be asked."""
    for path, methods in said["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _say_problems(path: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    responses.pop(FASTAPI_NOT_VALID, None)
    for status, codes in ALWAYS.items():
        if path in OPEN and status not in ("421", "503"):
            continue
        own = responses.get(status, {}).get("description", "")
        is_codes = own and not own.endswith(".")  # not a sentence, which says no more than the codes
        responses[status] = {"description": f"{own}, {codes}" if is_codes else codes}
    for status, response in responses.items():
        if status >= "400":
            response["content"] = {PROBLEM_TYPE: {"schema": PROBLEM}}
    operation["responses"] = dict(sorted(responses.items()))
