from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from server_process import server_process
from turnmill.server.app import create_app
from turnmill.server.openapi import operations
from turnmill.shelf.database import Database

STORED = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
SAID = json.loads(STORED.read_text("utf-8"))
ROUTES = [(path, method, operation) for path, method, operation in operations(SAID)]
NAMES = [f"{method} {path}" for path, method, _ in ROUTES]
SCHEMATHESIS = [
    "--max-examples", "15", "--phases", "examples,coverage,fuzzing", "--seed", "1", "--no-color",
    "--suppress-health-check", "all",
    "--exclude-checks", "positive_data_acceptance",  # no schema says what makes a data file valid
]  # fmt: skip


def test_the_stored_description_is_that_of_the_app(tmp_path: Path) -> None:
    app = create_app(tmp_path, Database(":memory:"))
    assert app.openapi() == SAID, "type `make docs`"


@pytest.mark.parametrize(("path", "method", "operation"), ROUTES, ids=NAMES)
def test_every_route_says_what_it_is_and_answers(path: str, method: str, operation: dict[str, Any]) -> None:
    assert operation["description"]
    assert operation["tags"]
    done = {status: answer for status, answer in operation["responses"].items() if status < "300"}
    assert done
    assert "422" not in operation["responses"]
    for status, answer in operation["responses"].items():
        if status >= "400":
            assert list(answer["content"]) == ["application/problem+json"]


def test_names_of_routes_are_unique() -> None:
    names = [operation["operationId"] for _, _, operation in ROUTES]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_no_request_is_answered_otherwise_than_described(shelf: Path, put, database_url: str, tmp_path: Path) -> None:
    put("0")
    with server_process(shelf, database_url, allowed_hosts=[]) as (url, _):
        command = ["run", f"{url}/openapi.json", *SCHEMATHESIS]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_what_cannot_be_asked_of_a_path_says_what_can(client: TestClient) -> None:
    answer = client.patch("/v1/training/datasets")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")
    assert client.request("TRACE", "/healthz").status_code == 405
