from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from turnmill.errors import UsageError
from turnmill.shelf import worker as under_test
from turnmill.shelf.database import Database, DatabaseUnavailable
from turnmill.shelf.jobs import Jobs
from turnmill.shelf.tables import Job
from turnmill.shelf.work import Ended
from turnmill.shelf.worker import Worker


class Script:
    """Work that goes as a test says."""

    def __init__(self, ends: Ended | Exception | None) -> None:
        self._ends = ends
        self.refuses: Exception | None = None
        self.began = threading.Event()
        self.told: list[str] = []

    def step(self) -> Ended | None:
        self.began.set()
        if isinstance(self._ends, Exception):
            raise self._ends
        return self._ends

    def progress(self) -> dict[str, Any] | None:
        return {"told": len(self.told)}

    def cancel(self) -> None:
        self.told.append("cancel")
        if self.refuses is not None:
            raise self.refuses

    def leave(self) -> None:
        self.told.append("leave")


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


@pytest.fixture
def job(jobs: Jobs) -> str:
    made = Job(kind="prepare", dataset="facts", filename="facts.jsonl", sha256="a" * 64, options={})
    return jobs.add(made).id


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue is told at every look."""
    for name, value in {"LOOK_S": 0.005, "STEP_S": 0.005, "RENEWED": 0.0}.items():
        monkeypatch.setattr(under_test, name, value)


def in_the_background(jobs: Jobs, script: Script, during: Callable[[Worker], object]) -> None:
    worker = Worker(jobs, lambda _: script)
    thread = threading.Thread(target=worker.run)
    thread.start()
    assert script.began.wait(30)
    during(worker)
    worker.stop()
    thread.join(30)
    assert not thread.is_alive()


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("ends", "status", "error"),
    [
        (Ended("done", None, {"packs": 1}), "done", None),
        (Ended("failed", "exit code 3"), "failed", "exit code 3"),
        (UsageError("no such model"), "failed", "no such model"),
    ],
)
def test_how_work_ends_the_job_ends(jobs: Jobs, job: str, ends: Any, status: str, error: str | None) -> None:
    Worker(jobs, lambda _: Script(ends)).run(until_empty=True)
    found = jobs.get(job)
    assert (found.status, found.error, found.leased_by) == (status, error, None)


def test_work_that_cannot_be_begun_has_failed(jobs: Jobs, job: str) -> None:
    def refuse(_: Job) -> Script:
        raise UsageError("the job names no model")

    Worker(jobs, refuse).run(until_empty=True)
    assert jobs.get(job).error == "the job names no model"


def test_a_cancelled_job_ends_its_work(jobs: Jobs, job: str) -> None:
    def cancel(_: Worker) -> None:
        jobs.cancel(job)
        wait_for(lambda: jobs.get(job).status == "cancelled")

    script = Script(None)
    in_the_background(jobs, script, cancel)
    assert script.told == ["cancel"]


def test_a_worker_that_is_stopped_gives_its_job_back(jobs: Jobs, job: str) -> None:
    script = Script(None)
    in_the_background(jobs, script, lambda worker: worker.stop())
    assert (script.told, jobs.get(job).status, jobs.get(job).attempt) == (["leave"], "queued", 0)


def test_a_worker_whose_job_another_one_has_leaves_it(jobs: Jobs, job: str, database: Database) -> None:
    script = Script(None)

    def take_over(_: Worker) -> None:
        with database.writing() as session:
            session.get_one(Job, job).leased_by = "other"
        wait_for(lambda: bool(script.told))

    in_the_background(jobs, script, take_over)
    assert (script.told, jobs.get(job).leased_by, jobs.get(job).status) == (["leave"], "other", "running")


def test_a_worker_that_the_queue_does_not_hear_lets_go_before_its_lease_is_over(
    jobs: Jobs, job: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "LET_GO", 0.002)
    script = Script(None)

    def lose_the_table(_: Worker) -> None:
        with database.writing() as session:
            session.execute(text("alter table jobs rename to elsewhere"))
        wait_for(lambda: bool(script.told))

    in_the_background(jobs, script, lose_the_table)
    assert script.told == ["leave"]


def test_what_a_worker_lost_is_taken_up_by_the_next(database: Database, jobs: Jobs, job: str) -> None:
    Jobs(database, timedelta(seconds=-1)).take("lost")
    Worker(jobs, lambda _: Script(Ended("done"))).run(until_empty=True)
    assert (jobs.get(job).status, jobs.get(job).attempt) == ("done", 2)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/srv/jobs/one/log"), "No space left on device"),
        (ZeroDivisionError("a row of the dataset"), "the worker met an error of its own"),
    ],
)
@pytest.mark.parametrize("at", ["begin", "step"])
def test_one_job_that_goes_wrong_ends_no_worker(jobs: Jobs, job: str, error: Exception, said: str, at: str) -> None:
    def work_of(_: Job) -> Script:
        if at == "begin":
            raise error
        return Script(error)

    Worker(jobs, work_of).run(until_empty=True)
    found = jobs.get(job)
    assert found.status == "failed"
    assert said in (found.error or "")
    assert "/srv" not in (found.error or "")
    assert "row" not in (found.error or "")


def test_work_that_cannot_be_ended_either_ends_no_worker(jobs: Jobs, job: str) -> None:
    script = Script(UsageError("the sidecar refuses"))
    script.refuses = UsageError("there is no such run")
    Worker(jobs, lambda _: script).run(until_empty=True)
    assert (jobs.get(job).error, script.told) == ("the sidecar refuses", ["cancel"])


def test_a_database_that_is_gone_for_a_while_ends_no_work(jobs: Jobs, job: str) -> None:
    answers: list[Any] = [DatabaseUnavailable("away"), DatabaseUnavailable("away"), Ended("done")]
    script = Script(None)

    def step() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    script.step = step  # type: ignore[method-assign]
    Worker(jobs, lambda _: script).run(until_empty=True)
    assert (jobs.get(job).status, script.told) == ("done", [])


def test_a_worker_that_is_stopped_while_the_database_is_gone_ends_no_work(
    jobs: Jobs, job: str, database: Database
) -> None:
    def lose_the_table_and_stop(worker: Worker) -> None:
        with database.writing() as session:
            session.execute(text("alter table jobs rename to elsewhere"))
        worker.stop()

    script = Script(None)
    in_the_background(jobs, script, lose_the_table_and_stop)
    assert script.told == ["leave"]


def test_what_no_database_can_keep_is_kept_as_it_can_be(jobs: Jobs, job: str) -> None:
    ended = Ended("failed", "the row is a\x00b", {"loss": float("nan")})
    Worker(jobs, lambda _: Script(ended)).run(until_empty=True)
    assert (jobs.get(job).error, jobs.get(job).result) == ("the row is a\\x00b", {"loss": None})
