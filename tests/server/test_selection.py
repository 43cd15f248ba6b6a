"""A job whose strategy chooses the rows, and what it chose beside its control."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from chats import chat
from turnmill.server.job_answers import SelectionAgainstControl
from turnmill.shelf.database import Database
from turnmill.shelf.job_work import Workplace
from turnmill.shelf.jobs import Jobs
from turnmill.shelf.worker import Worker

JOBS = "/v1/training/jobs"
OPENAI = 'file = "facts.jsonl"\ndialect = "openai"'


@pytest.fixture
def client(serve: Callable[..., TestClient], put: Callable[..., Path], model: Path) -> TestClient:
    """A client of a server with that model and forty rows."""
    rows = [chat(f"What is {n}?", f"It is {n} " + "and more " * (n % 7)) for n in range(40)]
    put(rows=b"".join(json.dumps(row).encode() + b"\n" for row in rows), manifest=OPENAI)
    return serve(models={"own": model})


def done(client: TestClient, database: Database, model: Path, place: Path, **options: Any) -> dict[str, Any]:
    """A job that is started over REST and done by a worker."""
    asked = {"kind": "prepare", "dataset": "facts", "max_tokens": 128, **options}
    answer = client.post(JOBS, json=asked)
    assert answer.status_code == 201, answer.text
    workplace = Workplace(database, place / "jobs", {"own": model})
    Worker(Jobs(database), workplace.work_of).run(until_empty=True)
    said: dict[str, Any] = client.get(f"{JOBS}/{answer.json()['id']}").json()
    assert said["status"] == "done", said
    return said


def test_what_a_strategy_chose_stands_beside_its_control(
    client: TestClient, database: Database, model: Path, tmp_path: Path
) -> None:
    job = done(client, database, model, tmp_path, strategy="hard-focus", select_rows=10, max_perplexity=0)
    said = client.get(f"{JOBS}/{job['id']}/selection").json()
    SelectionAgainstControl.model_validate(said)
    assert (said["strategy"], said["selected"]["rows"], said["control"]["rows"]) == ("hard-focus", 10, 10)
    assert said["selected"]["perplexity"]["min"] > said["control"]["perplexity"]["min"]
    assert 0 <= said["shared_rows"] <= 10


def test_without_a_strategy_there_is_no_control(
    client: TestClient, database: Database, model: Path, tmp_path: Path
) -> None:
    job = done(client, database, model, tmp_path)
    answer = client.get(f"{JOBS}/{job['id']}/selection")
    assert (answer.status_code, answer.json()["code"]) == (404, "no-control")


@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({"strategy": "best"}, "strategy"),
        ({"select_rows": 0}, "select_rows"),
        ({"max_perplexity": -1}, "max_perplexity"),
    ],
)
def test_what_no_strategy_takes_is_refused_at_its_field(client: TestClient, options: dict[str, Any], at: str) -> None:
    answer = client.post(JOBS, json={"kind": "prepare", "dataset": "facts", **options})
    assert answer.status_code == 400
    assert [fault["at"] for fault in answer.json()["faults"]] == [f"body.prepare.{at}"]
