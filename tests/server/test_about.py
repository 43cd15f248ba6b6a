from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from sidecar_stand_in import served
from turnmill.shelf.access import make_token
from turnmill.shelf.carry import Carrier
from turnmill.shelf.database import Database
from turnmill.shelf.jobs import Jobs
from turnmill.shelf.tables import Job

ABOUT = "/v1/training/about"
Serving = Callable[..., TestClient]


def add(database: Database, number: int) -> Job:
    return Jobs(database).add(
        Job(id=f"{number:032x}", kind="prepare", dataset="facts", filename="facts.jsonl", sha256="0" * 64, options={})
    )


def test_a_server_says_what_can_be_asked_of_it(serve: Serving, tmp_path: Path) -> None:
    said = serve(models={"tiny": tmp_path, "big": tmp_path}, read_only=True, max_bytes=7).get(ABOUT).json()
    assert (said["models"], said["read_only"], said["limits"]["max_bytes"]) == (["big", "tiny"], True, 7)
    assert "chatml" in said["templates"]
    assert "trl" in said["exporters"]
    assert said["job_kinds"] == ["prepare", "train", "evaluate", "audit", "export"]
    assert str(tmp_path) not in str(said)


def test_where_nobody_needs_a_token_everybody_is_an_admin(client: TestClient) -> None:
    said = client.get(ABOUT).json()
    assert (said["needs_token"], said["scope"], said["token"]) == (False, "admin", None)


def test_a_token_hears_what_it_is(client: TestClient, database: Database) -> None:
    token = make_token(database, "ci", "write", timedelta(days=1))
    said = client.get(ABOUT, headers={"Authorization": f"Bearer {token}"}).json()
    assert (said["needs_token"], said["scope"], said["token"]["name"]) == (True, "write", "ci")
    assert said["token"]["expires_at"].endswith("Z")
    assert token not in str(said)


def test_what_waits_and_who_works(client: TestClient, database: Database) -> None:
    jobs = [add(database, number) for number in range(4)]
    Jobs(database).take("one")
    Jobs(database, timedelta(seconds=-1)).take("lost")
    Jobs(database).cancel(jobs[-1].id)
    said = client.get(f"{ABOUT}/health").json()
    known = {name: said["queue"][name] for name in ("queued", "running", "lost", "workers")}
    assert known == {"queued": 1, "running": 2, "lost": 1, "workers": 1}
    assert said["queue"]["waiting_since"] < said["queue"]["last_taken_at"]
    assert said["free_bytes"] > 0


def test_nothing_waits_where_nothing_was_asked_for(client: TestClient) -> None:
    said = client.get(f"{ABOUT}/health").json()
    assert said["queue"] == {
        "queued": 0, "running": 0, "lost": 0, "workers": 0, "waiting_since": None, "last_taken_at": None
    }  # fmt: skip
    assert (said["shelf"], said["sidecar"]) == ("ok", "none")


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def sidecar_state(serve: Serving, url: str, secret: str | None) -> Any:
    client = serve(sidecar=Carrier(url, secret))
    assert client.get(ABOUT).json()["has_sidecar"]
    return client.get(f"{ABOUT}/health").json()["sidecar"]


def test_a_sidecar_that_takes_jobs_is_ready(serve: Serving, tmp_path: Path) -> None:
    with served(tmp_path / "sidecar", "the-secret-of-both") as url:
        assert sidecar_state(serve, url, "the-secret-of-both") == "ready"
        assert sidecar_state(serve, url, "another-secret-than") == "refuses"


def test_a_sidecar_that_is_silent_is_not_waited_for(serve: Serving, silent: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("turnmill.server.about.SIDECAR_S", 0.05)
    monkeypatch.setattr("turnmill.shelf.carry.CONNECT_S", 0.2)
    assert sidecar_state(serve, silent, None) == "down"


def test_a_shelf_that_is_not_there_yet_is_told(client: TestClient, shelf: Path) -> None:
    shelf.rmdir()
    assert client.get(f"{ABOUT}/health").json()["shelf"] == "not-there-yet"
