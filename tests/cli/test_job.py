from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from live_server import live
from turnmill.server.app import create_app
from turnmill.server.service import Serve
from turnmill.shelf.access import make_token
from turnmill.shelf.database import Database
from turnmill.shelf.job_folder import JobFolder
from turnmill.shelf.jobs import Jobs

Run = Callable[..., Any]
ROW = '{"instruction": "What is the capital of Peru?", "input": "", "output": "Lima."}\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A service's directory, with one dataset."""
    folder = tmp_path / "datasets_training" / "facts"
    folder.mkdir(parents=True)
    (folder / "dataset.toml").write_text('file = "facts.jsonl"')
    (folder / "facts.jsonl").write_text(ROW)
    return tmp_path


@pytest.fixture(params=["database", "server"])
def where(request: pytest.FixtureRequest, place: Path) -> Iterator[list[str]]:
    """Options that say whose jobs: a database's, or those of a server that asks for a token."""
    if request.param == "database":
        yield ["--database", str(place / "turnmill.db")]
        return
    database = Database(place / "turnmill.db")
    (place / "token").write_text(make_token(database, "test", "write") + "\n")
    options = Serve(models={"tiny": place}, jobs=place / "jobs")
    with live(create_app(place / "datasets_training", database, options)) as url:
        yield ["--server", f"{url}/v1", "--token-file", str(place / "token")]
    database.close()


def start(turnmill: Run, where: list[str], *more: str) -> Any:
    return turnmill("job", "start", "facts", "--set", "max_steps=2", *more, *where)


def test_a_job_is_started_listed_and_shown(turnmill: Run, where: list[str]) -> None:
    made = start(turnmill, where)
    assert made.code == 0, made.err
    job = made.out.strip()
    (listed,) = turnmill("job", "list", "--json", *where).json
    shown = turnmill("job", "show", job, "--json", *where).json
    assert (listed["id"], listed["status"], shown["options"]) == (job, "queued", {"max_steps": 2, "seed": 0})
    for verb in (("list",), ("show", job)):
        assert job in turnmill("job", *verb, *where).out


def test_a_job_is_cancelled(turnmill: Run, where: list[str]) -> None:
    job = start(turnmill, where).out.strip()
    assert turnmill("job", "cancel", job, *where).out == f"{job}: cancelled\n"


def test_a_job_is_started_again(turnmill: Run, where: list[str]) -> None:
    job = start(turnmill, where).out.strip()
    again = turnmill("job", "retry", job, *where).out.strip()
    assert again != job
    first, second = (turnmill("job", "show", each, "--json", *where).json for each in (job, again))
    assert [first[name] for name in ("kind", "dataset", "options")] == [
        second[name] for name in ("kind", "dataset", "options")
    ]


def test_a_log_is_followed_to_its_end(turnmill: Run, where: list[str], place: Path) -> None:
    job = start(turnmill, where).out.strip()
    JobFolder(place / "jobs" / job).log.write_text("step 1\nstep 2\n")
    database = Database(place / "turnmill.db")
    Jobs(database).cancel(job)
    database.close()
    assert turnmill("job", "logs", job, "--follow", *where).out == "step 1\nstep 2\n"
    assert turnmill("job", "logs", job, *where).out == "step 1\nstep 2\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["start", "none"], "none"),
        (["start", "facts", "--set", "content=AAAA"], "content"),
        (["start", "facts", "--set", "epochs"], "expected NAME=VALUE"),
        (["start", "facts", "--kind", "brew"], "brew"),
        (["show", "0" * 32], "unknown job"),
    ],
)
def test_what_cannot_be_is_refused(turnmill: Run, where: list[str], arguments: list[str], said: str) -> None:
    refused = turnmill("job", *arguments, *where)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err


def test_a_server_that_is_not_there_is_told(turnmill: Run) -> None:
    refused = turnmill("job", "list", "--server", "http://user:secret@127.0.0.1:1/v1")
    assert (refused.code, "no server answers at" in refused.err, "secret" in refused.err) == (2, True, False)


def test_without_a_token_a_server_that_needs_one_refuses(turnmill: Run, place: Path) -> None:
    database = Database(place / "turnmill.db")
    make_token(database, "test", "read")
    with live(create_app(place / "datasets_training", database, Serve())) as url:
        refused = turnmill("job", "list", "--server", f"{url}/v1")
    database.close()
    assert (refused.code, "(token-missing)" in refused.err) == (2, True)
