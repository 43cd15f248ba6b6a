"""Every route and every role: who is let in, and who is not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from turnmill.server.openapi import operations
from turnmill.shelf.access import make_token, revoke_token
from turnmill.shelf.database import Database

ITEM = "/v1/training/datasets/by-name/{name}"
JOB = "/v1/training/jobs/{job_id}"
TOKENS = "/v1/training/access-tokens"
ROUTES = {
    ("GET", "/healthz"): "nobody",
    ("GET", "/readyz"): "nobody",
    ("GET", "/metrics"): "read",
    ("GET", "/openapi.json"): "read",
    ("GET", "/v1/training/datasets"): "read",
    ("GET", "/v1/training/datasets/preview"): "read",
    ("POST", "/v1/training/datasets"): "write",
    ("GET", ITEM): "read",
    ("PUT", ITEM): "write",
    ("DELETE", f"{ITEM}?force=true"): "admin",
    ("DELETE", ITEM): "write",
    ("GET", f"{ITEM}/versions"): "read",
    ("GET", f"{ITEM}/check"): "read",
    ("GET", f"{ITEM}/diff"): "read",
    ("GET", f"{ITEM}/profile"): "read",
    ("GET", f"{ITEM}/file"): "read",
    ("GET", f"{ITEM}/rows"): "read",
    ("GET", f"{ITEM}/rows/{{line}}"): "read",
    ("POST", f"{ITEM}/replay"): "read",
    ("POST", "/v1/training/mix"): "read",
    ("GET", "/v1/training/codes"): "read",
    ("GET", "/v1/training/plugins/{family}"): "read",
    ("POST", f"{ITEM}/explain"): "read",
    ("POST", "/v1/training/jobs"): "write",
    ("GET", "/v1/training/jobs"): "read",
    ("GET", JOB): "read",
    ("POST", f"{JOB}/cancel"): "write",
    ("GET", f"{JOB}/log"): "read",
    ("GET", f"{JOB}/events"): "read",
    ("POST", f"{JOB}/retry"): "write",
    ("GET", f"{JOB}/files"): "read",
    ("GET", f"{JOB}/files/{{path}}"): "read",
    ("GET", f"{JOB}/manifest"): "read",
    ("GET", f"{JOB}/selection"): "read",
    ("GET", f"{JOB}/metrics"): "read",
    ("GET", f"{JOB}/answers"): "read",
    ("GET", f"{JOB}/quarantine"): "read",
    ("POST", f"{JOB}/quarantine/replay"): "read",
    ("GET", "/v1/training/about"): "read",
    ("GET", "/v1/training/about/health"): "read",
    ("GET", TOKENS): "admin",
    ("POST", TOKENS): "admin",
    ("POST", f"{TOKENS}/{{token_id}}/revoke"): "admin",
}
"""Method and path → the least that opens it."""
OPENS = {
    "nobody": {"nobody"},
    "read": {"nobody", "read"},
    "write": {"nobody", "read", "write"},
    "admin": {"nobody", "read", "write", "admin"},
}
SENT: dict[tuple[str, str], dict[str, Any]] = {
    ("PUT", ITEM): {"content": b'{"instruction": "a", "output": "b"}\n'},
    ("POST", f"{ITEM}/explain"): {"json": {"line": 1, "template": "chatml"}},
    ("POST", f"{ITEM}/replay"): {"json": {}},
    ("POST", "/v1/training/mix"): {"json": {"datasets": [{"name": "facts"}]}},
}


def asked(client: TestClient, method: str, path: str, token: str | None) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    parts = {"name": "facts", "job_id": "0" * 32, "token_id": "0" * 32, "line": 1, "family": "repairs", "path": "log"}
    place = path.format(**parts)
    return client.request(method, place, headers=headers, **SENT.get((method, path), {}))


def verdicts(client: TestClient, token: str | None) -> dict[tuple[str, str], str]:
    """What each route says to a token: a code of the guard, or that it let it in."""
    told = {}
    for method, path in ROUTES:
        answer = asked(client, method, path, token)
        assert answer.status_code < 500, answer.text
        refused = answer.status_code in (401, 403)
        told[method, path] = answer.json()["code"] if refused else "let in"
    return told


def expected(opened: set[str], code: str) -> dict[tuple[str, str], str]:
    return {route: "let in" if least in opened else code for route, least in ROUTES.items()}


def test_every_route_is_in_the_table(client: TestClient) -> None:
    said = {(method.upper(), path) for path, method, _ in operations(client.get("/openapi.json").json())}
    assert said | {("GET", "/openapi.json")} == {(method, path.partition("?")[0]) for method, path in ROUTES}


@pytest.mark.parametrize("scope", ["read", "write", "admin"])
def test_a_token_opens_what_its_scope_says(client: TestClient, put, database: Database, scope: str) -> None:
    put()
    token = make_token(database, "mine", scope)
    assert verdicts(client, token) == expected(OPENS[scope], "scope-too-small")


def test_before_the_first_token_everybody_may_do_everything(client: TestClient, put) -> None:
    put()
    assert verdicts(client, None) == expected(OPENS["admin"], "")


def test_without_a_token_nothing_opens_once_there_is_one(client: TestClient, put, database: Database) -> None:
    put()
    make_token(database, "first", "read")
    assert verdicts(client, None) == expected(OPENS["nobody"], "token-missing")


@pytest.mark.parametrize("kind", ["expired", "revoked", "unknown"])
def test_a_token_that_is_none_any_more_opens_nothing(client: TestClient, put, database: Database, kind: str) -> None:
    put()
    token = make_token(database, "mine", "admin", timedelta(microseconds=1) if kind == "expired" else None)
    if kind == "revoked":
        revoke_token(database, "mine")
    assert verdicts(client, token if kind != "unknown" else "tm_unknown") == expected({"nobody"}, "token-not-valid")


def test_a_server_that_only_reads_changes_nothing_for_anybody(
    serve: Callable[..., TestClient], put, database: Database
) -> None:
    folder = put()
    token = make_token(database, "mine", "admin")
    reads = {route: "let in" for route in ROUTES if route[0] == "GET"}
    assert verdicts(serve(read_only=True), token) == expected(OPENS["read"], "read-only") | reads
    assert sorted(path.name for path in folder.iterdir()) == ["dataset.toml", "facts.jsonl"]
