from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from turnmill.shelf.database import Database
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.jobs import Jobs

JOBS = "/v1/training/jobs"
ROW = '{"instruction": "What is the capital of Peru?", "input": "", "output": "Lima."}\n'
ABSENT = "0" * 32


@pytest.fixture
def client(serve: Callable[..., TestClient], shelf: Path, tmp_path: Path) -> TestClient:
    """A server with two datasets, a broken one, and a model."""
    for name, rows in {"facts": ROW, "poems": ROW * 2, "broken": "no row\n"}.items():
        (shelf / name).mkdir()
        (shelf / name / "dataset.toml").write_text(f'file = "{name}.jsonl"')
        (shelf / name / f"{name}.jsonl").write_text(rows)
    return serve(models={"tiny": tmp_path}, jobs=tmp_path / "jobs")


def started(client: TestClient, **asked: Any) -> dict[str, Any]:
    answer = client.post(JOBS, json={"dataset": "facts", "kind": "prepare", **asked})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def events_of(text: str) -> list[dict[str, Any]]:
    """Id, event and data of each server-sent event."""
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if block]
    return [{"id": block["id"], "event": block["event"], **json.loads(block["data"])} for block in blocks]


def test_a_job_takes_its_dataset_along_as_it_is(client: TestClient, shelf: Path, tmp_path: Path) -> None:
    job = started(client, max_tokens=64)
    (shelf / "facts" / "facts.jsonl").write_text(ROW * 9)
    assert (job["kind"], job["dataset"], job["filename"], job["status"]) == (
        "prepare",
        "facts",
        "facts.jsonl",
        "queued",
    )
    assert job["options"] == {"max_tokens": 64, "seed": 0}
    folder = JobFolder(tmp_path / "jobs" / job["id"])
    assert (folder.dataset.read_text(), folder.recipe()) == (ROW, {"dialect": "alpaca", "splits": {}})


def test_a_job_that_says_no_kind_trains(client: TestClient) -> None:
    assert client.post(JOBS, json={"dataset": "facts", "epochs": 2}).json()["kind"] == "train"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "dataset"),
        ({"dataset": "none"}, "none"),
        ({"dataset": "broken"}, "broken"),
        ({"dataset": "../facts"}, "dataset"),
        ({"dataset": "facts", "dataset_content": "AAAA"}, "dataset_content"),
        ({"dataset": "facts", "kind": "prepare", "epochs": 2}, "epochs"),
        ({"dataset": "facts", "kind": "brew"}, "kind"),
        ({"dataset": "facts", "kind": "prepare", "model": "other"}, "other"),
        ({"dataset": "facts", "kind": "prepare", "model": "/etc"}, "model"),
        ({"dataset": "facts", "kind": "export", "to": "none"}, "exporter"),
        ({"dataset": "facts", "kind": "export", "to": "../mine.py:name"}, "to"),
        ({"dataset": "facts", "kind": "audit", "job": ABSENT}, ABSENT),
        ({"dataset": "facts", "learning_rate": "NaN"}, "learning_rate"),
        ([], "body"),
    ],
)
def test_what_cannot_be_a_job_is_refused(client: TestClient, tmp_path: Path, asked: Any, said: str) -> None:
    answer = client.post(JOBS, json=asked)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert said in answer.json()["detail"]
    assert client.get(JOBS).json() == {"jobs": [], "next": None}
    assert not list((tmp_path / "jobs").glob("*"))


def test_a_job_that_is_not_done_is_no_model(client: TestClient) -> None:
    trains = started(client, kind="train")["id"]
    answer = client.post(JOBS, json={"dataset": "facts", "kind": "audit", "job": trains})
    assert answer.json()["detail"].endswith("expected a train job that is done")


def test_a_request_that_is_sent_again_is_one_job(client: TestClient, tmp_path: Path) -> None:
    sent = [client.post(JOBS, json={"dataset": "facts"}, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert sent[0].json() == sent[1].json()
    other = client.post(JOBS, json={"dataset": "poems"}, headers={"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["code"]) == (409, "key-used-before")
    assert len(list((tmp_path / "jobs").iterdir())) == 1


def test_a_request_that_is_sent_again_finds_its_job_although_the_dataset_is_gone(
    client: TestClient, shelf: Path
) -> None:
    sent = client.post(JOBS, json={"dataset": "facts"}, headers={"Idempotency-Key": "k"}).json()
    shutil.rmtree(shelf / "facts")
    again = client.post(JOBS, json={"dataset": "facts"}, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()) == (201, sent)


def test_what_a_killed_server_had_begun_to_take_along_is_removed(client: TestClient, tmp_path: Path) -> None:
    old, young = tmp_path / "jobs" / ".draft.old", tmp_path / "jobs" / ".draft.young"
    for draft in (old, young):
        (draft / "in").mkdir(parents=True)
    os.utime(old, (0, 0))
    started(client)
    assert (old.exists(), young.exists()) == (False, True)


def test_pages_of_jobs(client: TestClient) -> None:
    made = [started(client)["id"] for _ in range(3)]
    first = client.get(JOBS, params={"limit": 2}).json()
    rest = client.get(JOBS, params={"limit": 2, "before": first["next"]}).json()
    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == made[::-1]
    assert rest["next"] is None


def test_jobs_are_chosen(client: TestClient) -> None:
    first, second = started(client), started(client, dataset="poems")
    client.post(f"{JOBS}/{first['id']}/cancel")
    for query, found in (
        ({"status": "cancelled"}, [first["id"]]),
        ({"dataset": "poems", "kind": "prepare"}, [second["id"]]),
        ({"kind": "train"}, []),
    ):
        assert [job["id"] for job in client.get(JOBS, params=query).json()["jobs"]] == found
    assert client.get(JOBS, params={"kind": "brew"}).status_code == 400


def test_a_job_is_started_again_on_the_dataset_as_it_is_now(client: TestClient, shelf: Path, tmp_path: Path) -> None:
    job = started(client, kind="export", to="trl", max_tokens=64)
    (shelf / "facts" / "facts.jsonl").write_text(ROW * 9)
    sent = [client.post(f"{JOBS}/{job['id']}/retry", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    again = sent[0].json()
    assert (sent[0].status_code, sent[1].json()) == (201, again)
    assert [again[name] for name in ("kind", "dataset", "options", "status")] == [
        job[name] for name in ("kind", "dataset", "options", "status")
    ]
    assert again["sha256"] != job["sha256"]
    assert JobFolder(tmp_path / "jobs" / again["id"]).dataset.read_text() == ROW * 9


def test_a_job_whose_dataset_is_gone_is_not_started_again(client: TestClient, shelf: Path) -> None:
    job = started(client)
    shutil.rmtree(shelf / "facts")
    refused = client.post(f"{JOBS}/{job['id']}/retry")
    assert (refused.status_code, "facts" in refused.json()["detail"]) == (400, True)


def test_a_job_is_cancelled(client: TestClient) -> None:
    job = started(client)["id"]
    assert client.post(f"{JOBS}/{job}/cancel").json()["status"] == "cancelled"
    assert client.get(f"{JOBS}/{job}").json()["status"] == "cancelled"


def test_events_come_until_the_job_has_ended(client: TestClient, database: Database) -> None:
    job = started(client)["id"]
    Jobs(database).take("worker")
    Jobs(database).renew(job, "worker", {"task": "prepare"})
    Jobs(database).finish(job, "worker", "done")
    told = events_of(client.get(f"{JOBS}/{job}/events").text)
    assert [(event["id"], event["event"], event.get("status")) for event in told] == [
        ("1", "status", "queued"), ("2", "status", "running"), ("3", "progress", None), ("4", "status", "done")
    ]  # fmt: skip


def test_a_reader_that_comes_back_hears_only_what_it_has_not(client: TestClient) -> None:
    job = started(client)["id"]
    client.post(f"{JOBS}/{job}/cancel")
    told = events_of(client.get(f"{JOBS}/{job}/events", headers={"Last-Event-ID": "1"}).text)
    assert [event["status"] for event in told] == ["cancelled"]


def test_a_log_comes_in_pieces(client: TestClient, tmp_path: Path) -> None:
    job = started(client)["id"]
    assert client.get(f"{JOBS}/{job}/log").json() == {"text": "", "next_offset": 0, "is_whole": False}
    JobFolder(tmp_path / "jobs" / job).log.write_text("one\ntwo\n")
    client.post(f"{JOBS}/{job}/cancel")
    rest = client.get(f"{JOBS}/{job}/log", params={"offset": 4}).json()
    assert rest == {"text": "two\n", "next_offset": 8, "is_whole": True}


@pytest.mark.parametrize(
    ("method", "path"), [("GET", ""), ("POST", "/cancel"), ("GET", "/log"), ("GET", "/events"), ("POST", "/retry")]
)
@pytest.mark.parametrize(("job", "status"), [(ABSENT, 404), ("not-an-id", 400), ("..%2f..", 404)])
def test_no_such_job(client: TestClient, method: str, path: str, job: str, status: int) -> None:
    assert client.request(method, f"{JOBS}/{job}{path}").status_code == status
