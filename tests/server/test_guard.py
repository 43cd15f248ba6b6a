from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from turnmill.shelf.access import make_token, revoke_token
from turnmill.shelf.database import Database


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_without_any_token_made_everybody_may(client: TestClient) -> None:
    assert client.get("/metrics").status_code == 200


def test_once_a_token_was_made_nothing_but_health_opens_without_one(client: TestClient, database: Database) -> None:
    make_token(database, "reader", "read")
    answers = {path: client.get(path).status_code for path in ("/healthz", "/readyz", "/metrics", "/none")}
    assert answers == {"/healthz": 200, "/readyz": 200, "/metrics": 401, "/none": 401}


@pytest.mark.parametrize("header", ["Bearer wrong", "Basic abc", "Bearer ", "Bearer \xff", ""])
def test_what_is_no_token_opens_nothing(client: TestClient, database: Database, header: str) -> None:
    make_token(database, "reader", "read")
    answer = client.get("/metrics", headers={"Authorization": header.encode("latin-1")})
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_a_revoked_token_opens_nothing(serve: Callable[..., TestClient], database: Database) -> None:
    token = make_token(database, "reader", "read")
    assert serve().get("/metrics", headers=bearer(token)).status_code == 200
    revoke_token(database, "reader")
    assert serve().get("/metrics", headers=bearer(token)).json()["code"] == "token-not-valid"


def test_an_expired_token_opens_nothing(client: TestClient, database: Database) -> None:
    token = make_token(database, "brief", "admin", timedelta(microseconds=1))
    assert client.get("/metrics", headers=bearer(token)).json()["code"] == "token-not-valid"


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:80", 200), ("evil.example", 421), ("", 421)],
)
def test_another_host_is_refused(client: TestClient, host: str, status: int) -> None:
    assert client.get("/healthz", headers={"Host": host}).status_code == status


def test_a_problem_is_said_as_one(client: TestClient) -> None:
    answer = client.get("/none")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "urn:turnmill:problem:not-found", "title": "Not found",
        "status": 404, "code": "not-found", "detail": "Not Found",
    }  # fmt: skip
