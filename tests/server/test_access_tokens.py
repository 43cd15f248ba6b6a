from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from turnmill.shelf.access import make_token
from turnmill.shelf.database import Database

TOKENS, ABOUT = "/v1/training/access-tokens", "/v1/training/about"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def admin(client: TestClient) -> TestClient:
    """A client with the first token of a server."""
    made = client.post(TOKENS, json={"name": "first", "scope": "admin"})
    assert made.status_code == 201, made.text
    client.headers.update(bearer(made.json()["secret"]))
    return client


def test_the_first_token_closes_the_server_and_says_so(client: TestClient) -> None:
    made = client.post(TOKENS, json={"name": "first", "scope": "admin"})
    assert (made.json()["closes"], made.headers["cache-control"]) == (True, "no-store")
    assert client.get(ABOUT, headers=bearer(made.json()["secret"])).json()["scope"] == "admin"
    assert client.post(TOKENS, json={"name": "second"}, headers=bearer("tm_none")).status_code == 401


@pytest.mark.parametrize("more", [{"scope": "write"}, {}, {"scope": "admin", "lasts_s": 60}])
def test_nobody_locks_himself_out_with_the_first_token(client: TestClient, more: dict[str, Any]) -> None:
    refused = client.post(TOKENS, json={"name": "first", **more})
    assert (refused.status_code, refused.json()["code"]) == (409, "first-token-not-admin")
    assert client.get(TOKENS).json() == {"tokens": []}


def test_a_token_is_told_once(admin: TestClient) -> None:
    made = admin.post(TOKENS, json={"name": "ci", "scope": "write", "lasts_s": 60}).json()
    listed = admin.get(TOKENS)
    assert (made["closes"], made["state"]) == (False, "valid")
    assert made["secret"] not in listed.text
    assert "sha256" not in listed.text
    kept = {name: value for name, value in made.items() if name not in ("secret", "closes")}
    assert [token["name"] for token in listed.json()["tokens"]] == ["first", "ci"]
    assert listed.json()["tokens"][1] == kept


def test_a_revoked_token_opens_nothing(admin: TestClient) -> None:
    made = admin.post(TOKENS, json={"name": "ci"}).json()
    revoked = admin.post(f"{TOKENS}/{made['id']}/revoke").json()
    assert revoked["state"] == "revoked"
    assert admin.get(ABOUT, headers=bearer(made["secret"])).status_code == 401
    again = admin.post(f"{TOKENS}/{made['id']}/revoke").json()
    assert again["revoked_at"] == revoked["revoked_at"]


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"name": "first"}, 409, "name-taken"),
        ({"name": ""}, 400, "request-not-valid"),
        ({"name": "  "}, 400, "request-not-valid"),
        ({"name": "a\nb"}, 400, "request-not-valid"),
        ({"name": "a\u0000b"}, 400, "request-not-valid"),
        ({"name": "a" * 129}, 400, "request-not-valid"),
        ({"name": "ci", "scope": "root"}, 400, "request-not-valid"),
        ({"name": "ci", "lasts_s": 0}, 400, "request-not-valid"),
        ({"name": "ci", "lasts_s": 10**12}, 400, "request-not-valid"),
        ({"name": "ci", "secret": "mine"}, 400, "request-not-valid"),
    ],
)
def test_what_cannot_be_a_token_is_refused(admin: TestClient, asked: dict[str, Any], status: int, code: str) -> None:
    refused = admin.post(TOKENS, json=asked)
    assert (refused.status_code, refused.json()["code"]) == (status, code)
    assert len(admin.get(TOKENS).json()["tokens"]) == 1


def test_no_such_token(admin: TestClient) -> None:
    assert admin.post(f"{TOKENS}/{'0' * 32}/revoke").json()["code"] == "token-unknown"
    assert admin.post(f"{TOKENS}/first/revoke").status_code == 400


@pytest.mark.parametrize("scope", ["read", "write"])
def test_only_an_admin_sees_tokens(client: TestClient, database: Database, scope: str) -> None:
    client.headers.update(bearer(make_token(database, "mine", scope)))
    assert client.get(TOKENS).json()["code"] == "scope-too-small"
    assert client.post(TOKENS, json={"name": "more", "scope": "admin"}).json()["code"] == "scope-too-small"


def test_a_page_of_another_origin_makes_no_token(client: TestClient) -> None:
    refused = client.post(TOKENS, json={"name": "x", "scope": "admin"}, headers={"Origin": "http://evil.example"})
    assert refused.json()["code"] == "origin-not-allowed"
