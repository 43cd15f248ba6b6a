"""A server and its workers as processes: stopped, killed and begun again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service import Server, is_alive, wait_for
from turnmill.smollm2 import weights_directory

pytestmark = pytest.mark.slow
ENDED = ("done", "failed", "cancelled")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "datasets_training" / "facts"
    folder.mkdir(parents=True)
    (folder / "dataset.toml").write_text('file = "facts.jsonl"')
    rows = [{"instruction": f"What is {n} and {n}?", "input": "", "output": f"{2 * n}."} for n in range(300)]
    (folder / "facts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path


@pytest.fixture
def serve(place: Path) -> Iterator[Callable[..., Server]]:
    begun: list[Server] = []

    def start(*options: str | Path) -> Server:
        begun.append(Server(place, "--models", f"smollm2={weights_directory()}", *options))
        return begun[-1]

    yield start
    for server in begun:
        if server.process.poll() is None:
            server.stop()


def start_job(server: Server) -> str:
    answer = server.client.post("/training/jobs", json={"dataset": "facts", "kind": "prepare"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_job_is_done_and_a_server_that_is_stopped_leaves_no_worker(serve: Callable[..., Server]) -> None:
    server = serve("--workers", "1")
    job = start_job(server)
    wait_for(lambda: server.job(job)["status"] in ENDED)
    assert (server.job(job)["status"], server.job(job)["result"]["examples"]) == ("done", 300)
    workers = server.workers()
    assert len(workers) == 1
    assert server.stop() == 0
    assert not any(map(is_alive, workers))


def test_a_server_that_was_killed_loses_no_job(serve: Callable[..., Server]) -> None:
    first = serve("--workers", "1")
    job, workers = start_job(first), first.workers()
    wait_for(lambda: first.job(job)["status"] == "running")
    first.stop(signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, workers)))
    second = serve("--workers", "1")
    wait_for(lambda: second.job(job)["status"] in ENDED)
    assert second.job(job)["status"] == "done"


def test_a_killed_workers_job_is_taken_up_by_the_next_and_never_runs_twice_at_once(
    serve: Callable[..., Server], place: Path
) -> None:
    server = serve("--workers", "1", "--lease", "3")
    job = start_job(server)
    process = place / "jobs" / job / ".process"
    wait_for(process.exists)
    command = int(process.read_text())
    (worker,) = server.workers()
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: server.job(job)["attempt"] == 2 or server.job(job)["status"] in ENDED)
    wait_for(lambda: not is_alive(command))
    wait_for(lambda: server.job(job)["status"] in ENDED)
    assert (server.job(job)["status"], server.job(job)["attempt"]) == ("done", 2)
    assert server.workers() != [worker]
