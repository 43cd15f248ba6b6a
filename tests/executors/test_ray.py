"""The executor `ray`: the same bytes as on this machine, whoever dies."""

from __future__ import annotations

import functools
import json
import operator
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chats import chat
from published import Published
from ray_clusters import Cluster, workers_at_work
from turnmill.errors import UsageError
from turnmill.executors import executors

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]
ONES = functools.partial(pow, 2)
ROWS = 6_000
"""Some MB: several shards in every step."""


@pytest.fixture(scope="module")
def cluster():
    made = Cluster()
    try:
        made.start(2)
        yield made
    finally:
        made.stop()


@pytest.fixture
def connected(cluster, monkeypatch):
    import ray

    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    yield cluster
    ray.shutdown()


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "rows.jsonl"
    with path.open("w") as out:
        for number in (number % (ROWS - 500) for number in range(ROWS)):
            out.write(json.dumps(chat(f"What is {number} + {number}? " * 40, f"It is {2 * number}. " * 30)) + "\n")
    return path


@pytest.mark.parametrize("name", ["ray", "ray-actors"])
def test_results_come_in_the_order_of_the_tasks(connected, name):
    assert list(executors.get(name)(ONES, range(50), 2)) == [2**n for n in range(50)]
    assert list(executors.get(name)(ONES, [], 2)) == []


@pytest.mark.parametrize("name", ["ray", "ray-actors"])
def test_what_a_task_raises_is_raised_as_it_was(connected, name):
    results = executors.get(name)(functools.partial(operator.truediv, 1), [1, 0, 2], 2)
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        list(results)


def test_a_task_whose_workers_die_each_time_is_an_error(connected):
    with pytest.raises(UsageError, match="a task's worker died 4 times") as died:
        list(executors.get("ray")(os._exit, [9], 2))
    assert died.value.next_step == "ray status"


def test_tasks_run_on_both_nodes(connected):
    import ray

    places = set(executors.get("ray")(eval, [NODE] * 20, 2))
    assert len(places) == len(ray.nodes()) == 2


NODE = "(__import__('time').sleep(0.1), __import__('ray').get_runtime_context().get_node_id())[1]"


BY_PARTITION = """
import functools, turnmill.verbs.prepare as prepare
prepare.run = functools.partial(prepare.run, partitions=3)
"""
"""Before the command: dedup and split in tasks, however few the rows."""


def prepare(data: Path, output: Path, executor: str, *options: str, **environment: str) -> subprocess.Popen[str]:
    program = "from turnmill.cli.app import main; main()"
    program = program if executor == "inline" else f"{BY_PARTITION}\n{program}"
    command = [sys.executable, "-c", program, "prepare", data, "--model", "smollm2", "--output", output, *options]
    return subprocess.Popen(
        [*map(str, command), "--executor", executor, "--workers", "2"],
        env={**os.environ, **environment}, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def done(run: subprocess.Popen[str]) -> None:
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory) -> dict[str, str]:
    output = tmp_path_factory.mktemp("alone") / "out"
    done(prepare(data, output, "inline"))
    return Published(output).sha256


def test_every_executor_gives_the_same_bytes(cluster, data, alone, tmp_path):
    done(prepare(data, tmp_path / "local", "local"))
    done(prepare(data, tmp_path / "ray", "ray", RAY_ADDRESS=cluster.address))
    assert Published(tmp_path / "local").sha256 == alone
    assert Published(tmp_path / "ray").sha256 == alone


def test_scores_are_the_same_from_actors(cluster, data, tmp_path):
    options = ("--score.on", "true", "--score.scorer", "ngram", "--limit", "500")
    done(prepare(data, tmp_path / "local", "local", *options))
    done(prepare(data, tmp_path / "ray", "ray", *options, RAY_ADDRESS=cluster.address))
    assert Published(tmp_path / "ray").sha256 == Published(tmp_path / "local").sha256


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, data, alone, tmp_path):
    run = prepare(data, tmp_path / "out", "ray", RAY_ADDRESS=cluster.address)
    killed: set[int] = set()
    while run.poll() is None and len(killed) < 2:
        for worker in set(workers_at_work()) - killed:
            os.kill(worker, signal.SIGKILL)
            killed.add(worker)
        time.sleep(0.05)
    done(run)
    assert killed
    assert Published(tmp_path / "out").sha256 == alone


def test_a_node_killed_in_the_middle_changes_nothing(data, alone, tmp_path):
    cluster = Cluster()
    try:
        cluster.start(2)
        run = prepare(data, tmp_path / "out", "ray", RAY_ADDRESS=cluster.address)
        while run.poll() is None and len(workers_at_work()) < 2:
            time.sleep(0.02)
        assert run.poll() is None
        cluster.kill_node(1)
        done(run)
    finally:
        cluster.stop()
    assert Published(tmp_path / "out").sha256 == alone


def test_an_address_that_does_not_answer_is_told_at_once(data, tmp_path):
    run = prepare(data, tmp_path / "out", "ray", RAY_ADDRESS="127.0.0.1:9")
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 2
    assert "no Ray cluster answers at 127.0.0.1:9 (RAY_ADDRESS)" in errors
    assert errors.rstrip().endswith("ray status --address 127.0.0.1:9")
