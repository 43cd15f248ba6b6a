from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from turnmill.shelf.access import make_token
from turnmill.shelf.database import Database
from turnmill.shelf.records import Records
from turnmill.shelf.tables import Job

ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'
FACTS = "/v1/training/datasets/by-name/facts"


def item(name: str) -> str:
    return f"/v1/training/datasets/by-name/{name}"


@pytest.fixture
def used(database: Database) -> Callable[[str], None]:
    """Makes a job of the dataset `facts` that has that status."""

    def call(status: str) -> None:
        job = Job(kind="prepare", dataset="facts", filename="facts.jsonl", sha256="a" * 64, options={}, status=status)
        with database.writing() as session:
            session.add(job)

    return call


def test_one_dataset_is_told(client: TestClient, put) -> None:
    put()
    answer = client.get(FACTS)
    assert answer.json() == client.get("/v1/training/datasets").json()["datasets"][0]
    assert client.get(FACTS, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


@pytest.mark.parametrize(
    "path", [item("none"), item("none/versions"), item("none/check"), item("none/diff?against=facts")]
)
def test_none_of_that_name(client: TestClient, put, path: str) -> None:
    put()
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset-unknown")


def test_a_put_makes_a_dataset_and_replaces_it(client: TestClient) -> None:
    first, second = (client.put(FACTS, content=ROW * count) for count in (1, 2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert (first.json()["id"], second.json()["num_records"]) == (second.json()["id"], 2)
    assert client.get(FACTS).json() == second.json()


def test_a_put_of_another_format(client: TestClient) -> None:
    chat = b'[{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]'
    answer = client.put(FACTS, params={"format": "json", "dialect": "openai"}, content=chat)
    assert (answer.json()["file"], answer.json()["dialect"]) == ("facts.json", "openai")


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (FACTS, b"", 400, "file-not-valid"),
        (FACTS, b"x", 400, "file-not-valid"),
        (f"{FACTS}?format=csv", ROW, 400, "request-not-valid"),
        (item("a%20b"), ROW, 400, "name-not-valid"),
        (item(".a"), ROW, 400, "name-not-valid"),
        (item("x" * 123), ROW, 400, "name-not-valid"),
        (item("x" * 300), ROW, 400, "request-not-valid"),
        (item("a%2Fb"), ROW, 404, "not-found"),
        (item("..%2F..%2Fa"), ROW, 404, "not-found"),
    ],
)
def test_puts_that_are_refused(client: TestClient, shelf: Path, path: str, body: bytes, status: int, code: str) -> None:
    answer = client.put(path, content=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert [found for found in shelf.iterdir() if not found.name.startswith(".")] == []


def test_only_if_it_is_still_what_it_was(client: TestClient) -> None:
    tag = client.put(FACTS, content=ROW).headers["etag"]
    assert client.put(FACTS, content=ROW * 2, headers={"If-Match": tag}).status_code == 200
    for change in (lambda **more: client.put(FACTS, content=ROW, **more), lambda **more: client.delete(FACTS, **more)):
        answer = change(headers={"If-Match": tag})
        assert (answer.status_code, answer.json()["code"]) == (412, "precondition-failed")
    assert client.get(FACTS).json()["num_records"] == 2
    assert client.delete(FACTS, headers={"If-Match": client.get(FACTS).headers["etag"]}).status_code == 204


def test_only_if_it_is_there_or_is_not(client: TestClient) -> None:
    statuses = [
        client.put(FACTS, content=ROW, headers={"If-Match": "*"}).status_code,
        client.put(FACTS, content=ROW, headers={"If-None-Match": "*"}).status_code,
        client.put(FACTS, content=ROW, headers={"If-None-Match": "*"}).status_code,
        client.put(FACTS, content=ROW, headers={"If-Match": "*"}).status_code,
    ]
    assert statuses == [412, 201, 412, 200]


def test_what_is_removed_is_gone_and_its_record_stays(client: TestClient, put, shelf: Path, database: Database) -> None:
    put()
    client.get(FACTS)
    assert client.delete(FACTS).status_code == 204
    assert (client.get(FACTS).status_code, client.delete(FACTS).status_code) == (404, 404)
    assert not (shelf / "facts").exists()
    assert Records(database).get("facts") is not None


def test_a_directory_that_is_a_problem_can_be_removed(client: TestClient, put, shelf: Path) -> None:
    put("broken", manifest="file = ")
    assert client.delete(item("broken")).status_code == 204
    assert not (shelf / "broken").exists()


def test_of_a_link_only_the_link_is_removed(client: TestClient, put, shelf: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put().rename(outside)
    (shelf / "facts").symlink_to(outside)
    assert client.delete(FACTS).status_code == 204
    assert sorted(path.name for path in outside.iterdir()) == ["dataset.toml", "facts.jsonl"]


@pytest.mark.parametrize("name", ["..", ".", "%2e%2e", ".uploads", ".locks", "..%2F..", "%00", "a%0Ab"])
def test_nothing_else_can_be_removed(client: TestClient, put, shelf: Path, name: str) -> None:
    put()
    client.put(item("other"), content=ROW)
    assert client.delete(item(name)).status_code in (404, 405)
    assert {path.name for path in shelf.iterdir()} == {"facts", "other", ".uploads", ".locks"}


@pytest.mark.parametrize(("status", "told"), [("queued", 409), ("running", 409), ("done", 409), ("failed", 204)])
def test_what_a_job_used_stays(client: TestClient, put, used, status: str, told: int) -> None:
    put()
    used(status)
    answer = client.delete(FACTS)
    assert (answer.status_code, client.get(FACTS).status_code) == (told, 200 if told == 409 else 404)
    if told == 409:
        assert answer.json()["code"] == "dataset-in-use"


def test_only_an_admin_removes_what_a_job_used(client: TestClient, put, used, database: Database) -> None:
    put()
    used("done")
    answers = [
        client.delete(f"{FACTS}?force=true", headers={"Authorization": f"Bearer {make_token(database, scope, scope)}"})
        for scope in ("read", "write", "admin")
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 204]


def test_versions_are_told(client: TestClient) -> None:
    hashes = [client.put(FACTS, content=ROW * count).json()["sha256"] for count in (1, 2, 1)]
    found = client.get(f"{FACTS}/versions").json()
    assert found["name"] == "facts"
    assert [(one["sha256"], one["num_records"], one["current"]) for one in found["versions"]] == [
        (hashes[0], 1, True), (hashes[1], 2, False),
    ]  # fmt: skip
