"""A disk that is full, a database that goes and comes back, two servers at once: nothing is lost or half there."""

from __future__ import annotations

import hashlib
import resource
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from fastapi.testclient import TestClient

import databases
from server_process import server_process
from service import wait_for
from turnmill.server.app import create_app
from turnmill.server.service import Serve
from turnmill.shelf import database as database_module
from turnmill.shelf.access import make_token
from turnmill.shelf.database import Database
from turnmill.shelf.jobs import Jobs
from turnmill.shelf.tables import Job
from turnmill.shelf.work import Ended
from turnmill.shelf.worker import Worker

LIST, JOBS = "/v1/training/datasets", "/v1/training/jobs"
ITEM = f"{LIST}/by-name/facts"
ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'
OTHER = b'{"instruction": "c", "input": "", "output": "d"}\n'


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As on a disk that is full: what would become larger is refused."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files(place: Path) -> dict[str, bytes]:
    """Every file of a directory, but for locks."""
    found = (path for path in place.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(place)): path.read_bytes() for path in found}


def test_a_full_disk_leaves_the_dataset_that_was_there(client: TestClient, put, shelf: Path) -> None:
    put()
    listed, before = client.get(LIST).json(), files(shelf)
    with files_of_at_most(300_000):
        answer = client.put(ITEM, content=OTHER * 10_000)
        assert (answer.status_code, answer.json()["code"]) == (507, "not-stored")
        assert client.get(LIST).json() == listed
    assert files(shelf) == before
    assert client.put(ITEM, content=OTHER * 10_000).status_code == 200


def test_a_full_disk_begins_no_job(serve: Callable[..., TestClient], put, tmp_path: Path) -> None:
    put(rows=ROW * 10_000)
    client = serve(models={"tiny": tmp_path}, jobs=tmp_path / "jobs")
    asked = {"dataset": "facts", "kind": "prepare"}
    assert client.get(LIST).json()["datasets"]
    with files_of_at_most(300_000):
        answer = client.post(JOBS, json=asked)
        assert (answer.status_code, answer.json()["code"]) == (507, "not-stored")
        assert client.get(JOBS).json()["jobs"] == []
    assert files(tmp_path / "jobs") == {}
    assert client.post(JOBS, json=asked).status_code == 201


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Database]:
    """A SQLite database that is not waited for long."""
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_MS", 100)
    with closing(Database(tmp_path / "turnmill.db")) as database:
        yield database


def test_a_database_that_is_locked_is_read_and_not_written(
    impatient: Database, shelf: Path, put, tmp_path: Path
) -> None:
    put()
    headers = {"Authorization": f"Bearer {make_token(impatient, 'mine', 'admin')}"}
    app = create_app(shelf, impatient, Serve(models={"tiny": tmp_path}, jobs=tmp_path / "jobs"))
    client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False, headers=headers)
    make_token(impatient, "other", "admin")
    assert client.get(LIST).status_code == 200
    before = files(shelf)
    with closing(sqlite3.connect(tmp_path / "turnmill.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        changed = [client.put(ITEM, content=OTHER), client.post(JOBS, json={"dataset": "facts", "kind": "prepare"})]
        assert [(answer.status_code, answer.json()["code"]) for answer in changed] == [
            (503, "database-unavailable")
        ] * 2
        assert [client.get(path).status_code for path in (LIST, JOBS, "/readyz")] == [200] * 3
    assert files(shelf) == before
    assert files(tmp_path / "jobs") == {}
    assert client.put(ITEM, content=OTHER).status_code == 200


def test_a_token_is_known_although_nothing_can_be_written(impatient: Database, shelf: Path, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {make_token(impatient, 'mine', 'read')}"}
    client = TestClient(create_app(shelf, impatient), base_url="http://localhost", headers=headers)
    with closing(sqlite3.connect(tmp_path / "turnmill.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        assert client.get(LIST).status_code == 200


def test_a_file_that_is_moved_away_opens_nothing_until_it_is_back(
    impatient: Database, shelf: Path, put, tmp_path: Path
) -> None:
    put()
    token = make_token(impatient, "mine", "read")
    client = TestClient(create_app(shelf, impatient), base_url="http://localhost", raise_server_exceptions=False)
    impatient.close()
    (tmp_path / "turnmill.db").rename(tmp_path / "away")
    refused = [client.get(path) for path in (LIST, JOBS, "/readyz", "/metrics")]
    assert {answer.status_code for answer in refused} == {503}
    assert client.get("/healthz").status_code == 200
    (tmp_path / "away").rename(tmp_path / "turnmill.db")
    assert client.get(LIST, headers={"Authorization": f"Bearer {token}"}).status_code == 200


@pytest.mark.slow
@pytest.mark.postgres
def test_a_postgres_that_goes_and_comes_back_loses_nothing(shelf: Path, put, tmp_path: Path) -> None:
    put()
    with databases.postgres_server() as url, closing(Database(databases.new_database(url))) as database:
        app = create_app(shelf, database, Serve(models={"tiny": tmp_path}, jobs=tmp_path / "jobs"))
        client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)
        asked = {"dataset": "facts", "kind": "prepare"}
        job = client.post(JOBS, json=asked).json()["id"]
        before = files(shelf), files(tmp_path / "jobs")
        databases.stop(url)
        refused = [client.get(LIST), client.get(JOBS), client.get(f"{JOBS}/{job}"), client.get("/readyz")]
        refused += [client.put(ITEM, content=OTHER), client.post(JOBS, json=asked), client.post(f"{JOBS}/{job}/cancel")]
        assert {(answer.status_code, answer.json()["code"]) for answer in refused} == {(503, "database-unavailable")}
        assert client.get("/healthz").status_code == 200
        assert (files(shelf), files(tmp_path / "jobs")) == before
        databases.start(url)
        assert client.get(f"{JOBS}/{job}").json()["status"] == "queued"
        assert client.put(ITEM, content=OTHER).status_code == 200
        assert [dataset["name"] for dataset in client.get(LIST).json()["datasets"]] == ["facts"]


def keeps_uploading(url: str, row: bytes, seen: list[Any]) -> None:
    with httpx.Client(base_url=url, timeout=60) as client:
        for count in range(1, 11):
            seen.append(client.put(ITEM, content=row * count))
            seen.append(client.get(LIST))
            seen.append(client.get(f"{LIST}/preview?name=facts"))


@pytest.mark.slow
def test_two_servers_of_one_shelf_take_one_name_at_once(shelf: Path, database_url: str) -> None:
    seen: list[httpx.Response] = []
    with server_process(shelf, database_url) as (one, _), server_process(shelf, database_url) as (two, _):
        at_once = [
            threading.Thread(target=keeps_uploading, args=(url, row, seen)) for url, row in ((one, ROW), (two, OTHER))
        ]
        for thread in at_once:
            thread.start()
        for thread in at_once:
            thread.join()
        (listed,) = httpx.get(f"{one}{LIST}").json()["datasets"]
        assert listed == httpx.get(f"{two}{LIST}").json()["datasets"][0]
    assert len(seen) == 60
    assert not [answer.text for answer in seen if answer.status_code >= 500]
    whole = {hashlib.sha256(row * count).hexdigest() for row in (ROW, OTHER) for count in range(1, 11)}
    told = [dataset for answer in seen if "datasets" in answer.text[:12] for dataset in answer.json()["datasets"]]
    assert {dataset["sha256"] for dataset in told} <= whole
    assert listed["sha256"] == hashlib.sha256((shelf / "facts" / "facts.jsonl").read_bytes()).hexdigest()


class Waits:
    """Work that goes on until it is told to end."""

    def __init__(self) -> None:
        self.ends, self.told = threading.Event(), list[str]()

    def step(self) -> Ended | None:
        return Ended("done") if self.ends.is_set() else None

    def progress(self) -> dict[str, Any] | None:
        return None

    def cancel(self) -> None:
        self.told.append("cancel")

    def leave(self) -> None:
        self.told.append("leave")


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("ends", ["while it is away", "once it is back"])
def test_a_worker_goes_on_while_postgres_is_away(ends: str) -> None:
    with databases.postgres_server() as url, closing(Database(databases.new_database(url))) as database:
        jobs, work = Jobs(database), Waits()
        job = jobs.add(Job(kind="prepare", dataset="facts", filename="facts.jsonl", sha256="a" * 64, options={})).id
        worker = Worker(jobs, lambda _: work)
        thread = threading.Thread(target=worker.run, kwargs={"until_empty": True})
        thread.start()
        wait_for(lambda: jobs.get(job).status == "running")
        databases.stop(url)
        if ends == "while it is away":
            work.ends.set()
        databases.start(url)
        work.ends.set()
        thread.join(60)
        assert not thread.is_alive()
        assert (jobs.get(job).status, jobs.get(job).attempt, work.told) == ("done", 1, [])
