from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from turnmill.errors import UnknownName, UsageError
from turnmill.shelf.database import Database
from turnmill.shelf.jobs import MAX_ATTEMPTS, Jobs
from turnmill.shelf.tables import Job

OVER = timedelta(seconds=-1)
"""A lease that is over as soon as it is given."""


def job(kind: str = "prepare", **fields: Any) -> Job:
    whole = {"dataset": "facts", "filename": "facts.jsonl", "sha256": "a" * 64, "options": {"model": "tiny"}}
    return Job(kind=kind, **{**whole, **fields})


@pytest.fixture
def jobs(database: Database) -> Jobs:
    return Jobs(database)


@pytest.fixture
def lost(database: Database) -> Jobs:
    """The same queue, seen by workers that are lost at once."""
    return Jobs(database, OVER)


def said(jobs: Jobs, job_id: str) -> list[Any]:
    return [event.data.get("status") for event in jobs.events(job_id) if event.kind == "status"]


def test_jobs_are_taken_in_their_order_once_each(jobs: Jobs) -> None:
    made = [jobs.add(job()).id for _ in range(3)]
    taken = [jobs.take(f"worker {number}") for number in range(4)]
    assert [each and each.id for each in taken] == [*made, None]


def test_many_workers_take_every_job_once(jobs: Jobs) -> None:
    made = {jobs.add(job()).id for _ in range(20)}
    taken: list[str] = []

    def work(name: str) -> None:
        while (found := jobs.take(name)) is not None:
            taken.append(found.id)

    workers = [threading.Thread(target=work, args=(f"worker {number}",)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == sorted(made)


def test_a_job_that_ended_stays_as_it_is(jobs: Jobs) -> None:
    made = jobs.add(job()).id
    jobs.take("a")
    assert jobs.finish(made, "a", "done", result={"packs": 2})
    assert not jobs.finish(made, "a", "failed", error="late")
    ended = jobs.cancel(made)
    assert (ended.status, ended.result, ended.error, said(jobs, made)) == (
        "done", {"packs": 2}, None, ["queued", "running", "done"]
    )  # fmt: skip


def test_a_lost_workers_job_is_taken_over_and_the_lost_one_says_nothing_more(jobs: Jobs, lost: Jobs) -> None:
    made = jobs.add(job()).id
    lost.take("lost")
    taken = jobs.take("next")
    assert taken is not None
    assert (taken.id, taken.attempt) == (made, 2)
    assert jobs.renew(made, "lost") is None
    assert not jobs.finish(made, "lost", "done")
    assert jobs.renew(made, "next") is True


def test_a_job_that_workers_are_lost_with_has_failed(jobs: Jobs, lost: Jobs) -> None:
    made = jobs.add(job()).id
    for number in range(MAX_ATTEMPTS):
        lost.take(f"lost {number}")
    assert jobs.take("next") is None
    assert (jobs.get(made).status, jobs.get(made).error) == ("failed", "3 workers were lost while they had it")


def test_a_queued_job_is_cancelled_at_once(jobs: Jobs) -> None:
    made = jobs.add(job()).id
    assert jobs.cancel(made).status == "cancelled"
    assert jobs.take("a") is None


def test_a_running_job_is_told_to_end(jobs: Jobs) -> None:
    made = jobs.add(job()).id
    jobs.take("a")
    assert jobs.renew(made, "a") is True
    jobs.cancel(made)
    jobs.cancel(made)
    assert jobs.renew(made, "a") is False
    assert len(jobs.events(made)) == 3


def test_a_cancelled_job_of_a_lost_worker_is_not_begun_again(jobs: Jobs, lost: Jobs) -> None:
    made = jobs.add(job()).id
    lost.take("lost")
    jobs.cancel(made)
    assert jobs.take("next") is None
    assert jobs.get(made).status == "cancelled"


def test_a_job_given_back_is_no_attempt(jobs: Jobs) -> None:
    made = jobs.add(job()).id
    jobs.take("a")
    jobs.give_back(made, "a")
    taken = jobs.take("b")
    assert taken is not None
    assert taken.attempt == 1


def test_progress_is_an_event_only_where_it_changed(jobs: Jobs) -> None:
    made = jobs.add(job()).id
    jobs.take("a")
    for step in (1, 1, 2):
        jobs.renew(made, "a", {"step": step})
    told = [(event.number, event.data) for event in jobs.events(made, after=2)]
    assert told == [(3, {"step": 1}), (4, {"step": 2})]
    assert jobs.get(made).progress == {"step": 2}


def test_one_key_is_one_job(jobs: Jobs) -> None:
    first = jobs.add(job(idempotency_key="k"))
    assert jobs.add(job(idempotency_key="k")).id == first.id
    assert len(jobs.newest()) == 1
    with pytest.raises(UsageError, match="another job"):
        jobs.add(job("export", idempotency_key="k"))


def test_pages_go_from_the_newest_to_the_oldest(jobs: Jobs) -> None:
    made = [jobs.add(job()).id for _ in range(5)]
    pages, before = [], None
    while page := jobs.newest(before, 2):
        pages += [found.id for found in page]
        before = page[-1].id
    assert pages == made[::-1]


def test_an_unknown_job_is_told(jobs: Jobs) -> None:
    for ask in (jobs.get, jobs.cancel, jobs.newest):
        with pytest.raises(UnknownName, match="unknown job"):
            ask("none")
