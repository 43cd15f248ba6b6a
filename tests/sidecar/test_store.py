from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar_stand_in import OTHER_ROWS, ROWS, job, served, settings, stored
from turnmill.sidecar.problems import Refused
from turnmill.sidecar.service import Service
from turnmill.sidecar.store import Store

START = "/training/job_start"
KILLED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from sidecar_stand_in import ROWS, OTHER_ROWS, settings
from turnmill.sidecar.service import Service

service = Service(settings(Path(sys.argv[1])))

def chunks():
    yield OTHER_ROWS
    os._exit(9)

with service.store.drafted("facts.jsonl", chunks()):
    pass
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    return Store(tmp_path / "datasets", drafts, 10_000)


@pytest.fixture
def small_disk() -> Iterator[None]:
    """No file grows beyond a few bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_draft_replaces_what_was_there_whole(store) -> None:
    for rows in (ROWS, OTHER_ROWS):
        with store.drafted("facts.jsonl", [rows[:9], rows[9:]]) as draft:
            store.replace(draft)
        assert (store.folder / "facts.jsonl").read_bytes() == rows
    assert store.dataset("facts.jsonl").size_bytes == len(OTHER_ROWS)


def test_a_draft_that_is_not_put_in_its_place_is_gone(store, tmp_path) -> None:
    with store.drafted("facts.jsonl", [ROWS]):
        pass
    assert (list(store.folder.iterdir()), list((tmp_path / "drafts").iterdir())) == ([], [])


def test_a_file_that_stops_coming_replaces_nothing(store, tmp_path) -> None:
    with store.drafted("facts.jsonl", [ROWS]) as draft:
        store.replace(draft)
    with pytest.raises(ConnectionError), store.drafted("facts.jsonl", _broken()):
        pytest.fail("a half of a file is no dataset")
    assert (store.folder / "facts.jsonl").read_bytes() == ROWS
    assert list((tmp_path / "drafts").iterdir()) == []


def _broken() -> Iterator[bytes]:
    yield OTHER_ROWS
    raise ConnectionError("the client went away")


def test_what_is_stored_is_taken_as_a_copy(store) -> None:
    with store.drafted("facts.jsonl", [ROWS]) as draft:
        store.replace(draft)
    with store.taken("facts.jsonl") as taken, store.drafted("facts.jsonl", [OTHER_ROWS]) as other:
        store.replace(other)
        assert taken.path.read_bytes() == ROWS


def test_a_link_in_the_store_is_not_followed_out_of_it(store, tmp_path) -> None:
    (tmp_path / "secret").write_bytes(ROWS)
    (store.folder / "facts.jsonl").symlink_to(tmp_path / "secret")
    with pytest.raises(Exception, match="leads out"), store.taken("facts.jsonl"):
        pytest.fail("it was followed")


def test_a_file_larger_than_the_limit_is_not_written_on(store) -> None:
    with pytest.raises(Refused, match="10,000 bytes"), store.drafted("a.jsonl", [b" " * 9_000] * 3):
        pytest.fail("it was taken")


def test_a_full_disk_refuses_the_job_and_keeps_the_old_file(sidecar, data, small_disk) -> None:
    sidecar.post(START, json=job())
    answer = sidecar.post(START, json=job(ROWS * 1_000, job="two"))
    assert (answer.status_code, answer.json()["code"]) == (507, "storage-refused")
    assert str(data) not in answer.text
    assert stored(data) == {"facts.jsonl": ROWS}
    assert list((data / "drafts").iterdir()) == []
    assert sidecar.get("/training/jobs/two").status_code == 404


def test_a_sidecar_that_is_killed_while_a_file_comes_keeps_the_old_one(data, tmp_path) -> None:
    service = Service(settings(data))
    with service.store.drafted("facts.jsonl", [ROWS]) as draft:
        service.store.replace(draft)
    service.close()
    tests = str(Path(__file__).parents[1])
    assert subprocess.run([sys.executable, "-c", KILLED, str(data), tests]).returncode == 9
    assert list((data / "drafts").iterdir()) != []
    Service(settings(data)).close()
    assert stored(data) == {"facts.jsonl": ROWS}
    assert list((data / "drafts").iterdir()) == []


def test_a_client_that_goes_away_leaves_nothing(data) -> None:
    import socket
    from urllib.parse import urlsplit

    head = b"POST /training/job_start HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with served(data) as url:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port)) as sent:
            sent.sendall(head + b'Content-Length: 99999\r\n\r\n{"dataset": "facts.jsonl", "dataset_con')
    assert (stored(data), list((data / "drafts").iterdir()), list((data / "runs").iterdir())) == ({}, [], [])
