from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sidecar_stand_in import FAILS, WAITS, go, instant, of, served, state, stored, until
from turnmill.errors import StaleError
from turnmill.files.publish import publish
from turnmill.shelf import carried as under_test
from turnmill.shelf.carried import Carried, fetch_model
from turnmill.shelf.carry import Carrier, SidecarDown, SidecarRefused
from turnmill.shelf.content import Content
from turnmill.shelf.database import Database, DatabaseUnavailable
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.job_work import Workplace
from turnmill.shelf.records import Records
from turnmill.shelf.tables import Job
from turnmill.shelf.work import Ended
from turnmill.sidecar.runs import work_of

ROWS = b'{"instruction": "a", "input": "", "output": "b"}\n'
SHA = hashlib.sha256(ROWS).hexdigest()
SECRET = "what-only-two-know"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "LOOK_S", 0.01)


@pytest.fixture
def job() -> Job:
    return Job(
        id="a" * 32, kind="train", dataset="facts", filename="facts.jsonl", sha256=SHA, options={"max_steps": 2}
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, job: Job) -> JobFolder:
    folder = JobFolder(tmp_path / "jobs" / job.id)
    folder.path.mkdir(parents=True)
    folder.dataset.write_bytes(ROWS)
    (folder.path / "recipe.json").write_text('{"dialect": "alpaca", "splits": {"eval": 0.5}}')
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "sidecar"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "turnmill.db")
    Records(opened).put("facts", Content(len(ROWS), 1, SHA, is_usable=True))
    yield opened
    opened.close()


@pytest.fixture
def begin(job: Job, folder: JobFolder, database: Database) -> Callable[[str], Carried]:
    """Begins the job at a sidecar, as a worker does."""

    def start(url: str) -> Carried:
        place = Workplace(database, folder.path.parent, {}, Carrier(url, SECRET))
        work = place.work_of(job)
        assert isinstance(work, Carried)
        return work

    return start


LOGS = f"""
import pathlib
place = pathlib.Path({work_of(Path()).name!r})
place.mkdir()
(place / "metrics.jsonl").write_text('{{"step": 1, "loss": 2.5}}\\n')
pathlib.Path("worked").write_text("yes")
"""
"""A training that logs a step."""


def followed(work: Carried) -> Ended:
    """How it ended."""
    found: Ended = until(work.step)
    return found


def test_exactly_the_jobs_data_reach_the_sidecar(begin: Any, data: Path, database: Database, job: Job) -> None:
    with served(data, SECRET) as url:
        ended = followed(begin(url))
    assert (ended.status, ended.error, ended.result["state"]) == ("done", None, "done")
    assert stored(data) == {"facts.jsonl": ROWS}
    assert state(data, job.id)["options"] == {"eval_fraction": 0.5, "max_steps": 2}
    record = Records(database).get("facts")
    assert record is not None
    assert (record.status, record.synced_at is not None) == ("synced", True)


def test_a_dataset_that_has_changed_meanwhile_is_not_synced(begin: Any, data: Path, database: Database) -> None:
    Records(database).put("facts", Content(9, 1, "b" * 64, is_usable=True))
    with served(data, SECRET) as url:
        assert followed(begin(url)).status == "done"
    record = Records(database).get("facts")
    assert record is not None
    assert record.status == "stored"


def test_what_the_training_failed_of_the_job_failed_of(begin: Any, data: Path, folder: JobFolder) -> None:
    with served(data, SECRET, stages=of(FAILS)) as url:
        ended = followed(begin(url))
    assert (ended.status, "the loss is nan" in (ended.error or "")) == ("failed", True)
    assert "turnmill: the loss is nan\n" in folder.log.read_text()


def test_what_a_training_logs_is_kept_here(begin: Any, data: Path, folder: JobFolder) -> None:
    with served(data, SECRET, stages=of(LOGS)) as url:
        assert followed(begin(url)).status == "done"
    assert folder.metrics.read_text() == '{"step": 1, "loss": 2.5}\n'


def test_a_second_worker_follows_the_same_run(begin: Any, data: Path, folder: JobFolder, job: Job) -> None:
    with served(data, SECRET, stages=of(WAITS)) as url:
        first = begin(url)
        until(lambda: first.step() or (data / "runs" / job.id / "begun").exists())
        first.leave()
        second = begin(url)
        go(data / "runs" / job.id)
        assert followed(second).status == "done"
    assert len((data / "runs" / job.id / "begun").read_text().split()) == 1
    assert folder.log.read_text() == (data / "runs" / job.id / "log").read_text()


def test_a_cancelled_job_ends_the_sidecars_run(begin: Any, data: Path, job: Job) -> None:
    with served(data, SECRET, stages=of(WAITS)) as url:
        work = begin(url)
        until(lambda: work.step() or (data / "runs" / job.id / "begun").exists())
        work.cancel()
        assert followed(work).status == "cancelled"


def test_a_job_that_the_sidecar_refuses_is_cancelled_without_a_word(begin: Any, data: Path, job: Job) -> None:
    job.options = {"model": "unknown"}
    with served(data, SECRET) as url:
        work = begin(url)
        with pytest.raises(SidecarRefused, match="unknown"):
            followed(work)
        work.cancel()


def test_a_job_that_is_cancelled_on_its_way_is_ended_where_it_arrives(begin: Any, data: Path, job: Job) -> None:
    with served(data, SECRET, stages=of(WAITS)) as url:
        begin(url).cancel()
        until(lambda: (data / "runs" / job.id / "state.json").exists() and state(data, job.id)["state"] == "cancelled")


def test_a_run_that_has_ended_is_cancelled_without_a_word(begin: Any, data: Path) -> None:
    with served(data, SECRET) as url:
        work = begin(url)
        assert followed(work).status == "done"
        work.cancel()


def test_a_database_that_is_gone_when_the_sidecar_takes_the_job_hears_of_it_later(
    job: Job, folder: JobFolder, data: Path
) -> None:
    answers = [DatabaseUnavailable("away"), None]
    told: list[str] = []

    def taken() -> None:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        told.append("synced")

    with served(data, SECRET) as url:
        work = Carried(job, folder, Carrier(url, SECRET), taken)
        with pytest.raises(DatabaseUnavailable):
            followed(work)
        assert (followed(work).status, told) == ("done", ["synced"])


def test_a_sidecar_that_is_down_is_told_clearly(
    begin: Any, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    monkeypatch.setattr(under_test, "TAKEN_S", 0.1)
    with pytest.raises(SidecarDown, match=r"the sidecar at http://127.0.0.1:1 is down: "):
        followed(begin("http://127.0.0.1:1"))
    record = Records(database).get("facts")
    assert record is not None
    assert record.status == "stored"


def test_a_sidecar_that_goes_down_at_work_is_waited_for(begin: Any, data: Path, monkeypatch: Any, job: Job) -> None:
    monkeypatch.setattr(under_test, "DEADLINE_S", 0.1)
    with served(data, SECRET, stages=of(WAITS)) as url:
        work = begin(url)
        until(lambda: work.step() or (data / "runs" / job.id / "begun").exists())
    until(lambda: work.step() or (work.progress() or {}).get("sidecar") == "down")
    monkeypatch.setattr(under_test, "PATIENCE_S", 0.0)
    with pytest.raises(SidecarDown):
        followed(work)


def published(data: Path, url: str, begin: Any, job: Job) -> Path:
    """The model that the job's run has published."""
    assert followed(begin(url)).status == "done"
    model = data / "runs" / job.id / "trained"
    publish({"config.json": b"{}", "sub/weights": b"w" * 100_000}, model)
    return model


def test_a_trained_model_is_brought_whole(begin: Any, data: Path, tmp_path: Path, job: Job) -> None:
    with served(data, SECRET, stages=instant) as url:
        published(data, url, begin, job)
        fetch_model(Carrier(url, SECRET), job.id, tmp_path / "model")
    assert (tmp_path / "model" / "sub" / "weights").read_bytes() == b"w" * 100_000


@pytest.mark.parametrize("fault", ["absent", "damaged"])
def test_half_a_model_is_never_there(begin: Any, data: Path, tmp_path: Path, job: Job, fault: str) -> None:
    with served(data, SECRET, stages=instant) as url:
        if fault == "absent":
            followed(begin(url))
        else:
            (published(data, url, begin, job) / "sub" / "weights").write_bytes(b"x" * 100_000)
        with pytest.raises(StaleError):
            fetch_model(Carrier(url, SECRET), job.id, tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir() if "model" in path.name) == []
