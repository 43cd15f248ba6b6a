from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from server_process import server_process
from turnmill.server.answers import Dataset
from turnmill.shelf.database import Database
from turnmill.shelf.records import Records

ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'
CHAT = b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n'
LIST = "/v1/training/datasets"
FORM = {"Content-Type": "multipart/form-data; boundary=B"}


def part(name: str, value: bytes, filename: str | None = None) -> bytes:
    said = f'; filename="{filename}"' if filename is not None else ""
    return f'--B\r\nContent-Disposition: form-data; name="{name}"{said}\r\n\r\n'.encode() + value + b"\r\n"


def seen(shelf: Path) -> list[str]:
    """The files of a shelf, but for locks."""
    return sorted(
        str(path.relative_to(shelf)) for path in shelf.rglob("*") if path.is_file() and path.suffix != ".lock"
    )


def test_an_upload_answers_with_the_dataset_as_listed(client: TestClient, shelf: Path) -> None:
    answer = client.post(LIST, files={"file": ("facts.jsonl", ROW * 3)})
    assert answer.status_code == 201
    Dataset.model_validate_json(answer.content)
    assert client.get(LIST).json()["datasets"] == [answer.json()]
    assert client.get(f"{LIST}/by-name/facts").headers["etag"] == answer.headers["etag"]
    assert seen(shelf) == ["facts/dataset.toml", "facts/facts.jsonl"]


def test_an_upload_replaces_the_file(client: TestClient, database: Database) -> None:
    first = client.post(LIST, files={"file": ("facts.jsonl", ROW)}).json()
    Records(database).mark_synced("facts", first["sha256"])
    second = client.post(LIST, files={"file": ("facts.jsonl", ROW * 2)}).json()
    assert (second["id"], second["num_records"], second["status"]) == (first["id"], 2, "stored")


@pytest.mark.parametrize("order", [("filename", "file"), ("file", "filename")])
def test_a_field_names_the_file_wherever_it_stands(client: TestClient, order: tuple[str, str]) -> None:
    parts = {"filename": part("filename", b"facts.jsonl"), "file": part("file", ROW, "/tmp/other name")}
    answer = client.post(LIST, content=b"".join(parts[name] for name in order) + b"--B--\r\n", headers=FORM)
    assert (answer.status_code, answer.json()["name"]) == (201, "facts")


def test_other_formats_and_dialects(client: TestClient) -> None:
    chats = client.post(LIST, files={"file": ("chats.jsonl", CHAT)}, data={"dialect": "openai"}).json()
    assert (chats["dialect"], chats["num_records"], chats["file"]) == ("openai", 1, "chats.jsonl")
    listed = client.post(LIST, files={"file": ("list.json", b"[" + CHAT + b"]")}, data={"format": "json"}).json()
    assert (listed["format"], listed["dialect"], listed["filename"]) == ("json", "auto", "list.jsonl")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "breaks off"),
        (part("file", ROW, "a.jsonl"), "breaks off"),
        (b"--B--\r\n", "no file"),
        (part("filename", b"a.jsonl") + b"--B--\r\n", "no file"),
        (part("file", ROW, "a.jsonl") * 2 + b"--B--\r\n", "twice"),
        (part("content", ROW, "a.jsonl") + b"--B--\r\n", "the field 'content'"),
        (part("file", ROW) + b"--B--\r\n", "no name"),
        (part("file", ROW, "") + b"--B--\r\n", "no name"),
        (part("filename", b"\xff") + part("file", ROW, "") + b"--B--\r\n", "not UTF-8"),
        (part("filename", b"x" * 2000) + part("file", ROW, "") + b"--B--\r\n", "more than 1,024 bytes"),
        (b"--C\r\nnot a form", "broken"),
        (b"--B\r\n" + b"X-A: b\r\n" * 100 + b"\r\n", "broken"),
        (b"--B\r\nContent-Disposition: " + b"x" * 100_000 + b"\r\n\r\n", "broken"),
        (b'--B\r\nContent-Type: text/plain\r\n\r\nfile\r\n--B--\r\n', "the field ''"),
    ],
)  # fmt: skip
def test_forms_that_are_none(client: TestClient, shelf: Path, body: bytes, said: str) -> None:
    answer = client.post(LIST, content=body, headers=FORM)
    assert (answer.status_code, answer.json()["code"]) == (400, "request-not-valid")
    assert said in answer.json()["detail"]
    assert seen(shelf) == []


@pytest.mark.parametrize(
    "kind", ["", "application/json", "multipart/form-data", "multipart/form-data; boundary=" + "x" * 999]
)
def test_bodies_that_are_no_form(client: TestClient, kind: str) -> None:
    assert client.post(LIST, content=ROW, headers={"Content-Type": kind}).status_code == 400


@pytest.mark.parametrize(
    "filename", ["../a.jsonl", "..\\a.jsonl", "/etc/a.jsonl", "a/b.jsonl", ".a.jsonl", "a.json", "%2e.jsonl"]
)
def test_names_that_are_paths_are_refused(client: TestClient, shelf: Path, filename: str) -> None:
    answer = client.post(LIST, files={"file": ("x.jsonl", ROW)}, data={"filename": filename})
    assert (answer.status_code, answer.json()["code"]) == (400, "name-not-valid")
    assert {path.name for path in shelf.parent.iterdir()} <= {"datasets_training", "state"}


def test_every_fault_is_told_up_to_twenty(client: TestClient, shelf: Path) -> None:
    answer = client.post(LIST, files={"file": ("bad.jsonl", ROW + b'{"instruction": "a"}\n' * 30)})
    problem = answer.json()
    assert (answer.status_code, problem["code"], len(problem["faults"])) == (400, "file-not-valid", 20)
    assert problem["faults"][0] == {
        "file": "bad.jsonl", "line": 2, "error": "the row has no 'output'; it has ['instruction']"
    }  # fmt: skip
    assert "30 faults" in problem["detail"]
    assert seen(shelf) == []


@pytest.mark.parametrize(
    ("manifest", "code"),
    [('file = "rows.jsonl"', "file-named-otherwise"), ('file = "facts.jsonl"\nname = "x"', "name-taken")],
)
def test_manifests_of_their_own_refuse_uploads(client: TestClient, put, manifest: str, code: str) -> None:
    put(manifest=manifest)
    answer = client.post(LIST, files={"file": ("facts.jsonl", ROW)})
    assert (answer.status_code, answer.json()["code"]) == (409, code)


def test_a_file_over_the_limit_is_refused(serve: Callable[..., TestClient], shelf: Path) -> None:
    client = serve(max_bytes=100)
    assert client.post(LIST, files={"file": ("a.jsonl", ROW * 2)}).status_code == 201
    answer = client.post(LIST, files={"file": ("a.jsonl", ROW * 3)})
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert client.put(f"{LIST}/by-name/a", content=ROW * 3).status_code == 413
    assert client.get(LIST).json()["datasets"][0]["num_records"] == 2
    assert seen(shelf) == ["a/a.jsonl", "a/dataset.toml"]


def test_a_body_of_no_stated_length_is_cut_off_at_the_limit(serve: Callable[..., TestClient], shelf: Path) -> None:
    client = serve(max_bytes=1000, max_body_bytes=1000)
    sent: list[int] = []

    def body() -> Iterator[bytes]:
        yield part("file", b"", "a.jsonl").rstrip() + b"\r\n\r\n"
        for number in range(10_000):
            sent.append(number)
            yield ROW * 100

    answer = client.post(LIST, content=body(), headers=FORM)
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert seen(shelf) == []


def test_a_database_that_fails_leaves_no_file(client: TestClient, shelf: Path, database: Database) -> None:
    with database.writing() as session:
        session.execute(text("drop table dataset_versions"))
    answer = client.post(LIST, files={"file": ("facts.jsonl", ROW)})
    assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
    assert seen(shelf) == []


def test_so_many_uploads_are_taken_at_once(serve: Callable[..., TestClient]) -> None:
    answer = serve(max_uploads=0).post(LIST, files={"file": ("facts.jsonl", ROW)})
    assert (answer.status_code, answer.json()["code"]) == (503, "too-many-uploads")
    assert int(answer.headers["retry-after"]) > 0


def test_an_upload_that_ended_makes_room_however_it_ended(serve: Callable[..., TestClient]) -> None:
    client = serve(max_uploads=1)
    for rows, status in ((b"x", 400), (ROW, 201), (b"x", 400), (ROW, 201)):
        assert client.post(LIST, files={"file": ("facts.jsonl", rows)}).status_code == status


def test_a_place_that_cannot_be_written_is_told_without_its_path(client: TestClient, shelf: Path) -> None:
    (shelf / ".uploads").write_text("in the way")
    answer = client.post(LIST, files={"file": ("facts.jsonl", ROW)})
    assert (answer.status_code, answer.json()["code"]) == (507, "not-stored")
    assert str(shelf) not in answer.text


@pytest.fixture
def live(shelf: Path, database_url: str) -> Iterator[str]:
    with server_process(shelf, database_url, max_uploads=4) as (url, _):
        yield url


def test_uploads_of_one_name_at_once_leave_one_whole_file(live: str) -> None:
    answers: list[httpx.Response] = []

    def work(count: int) -> None:
        answers.append(httpx.post(f"{live}{LIST}", files={"file": ("facts.jsonl", ROW * count)}, timeout=30))

    threads = [threading.Thread(target=work, args=[count]) for count in (1, 2000, 3, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [201] * 4
    (found,) = httpx.get(f"{live}{LIST}").json()["datasets"]
    assert found["sha256"] in {answer.json()["sha256"] for answer in answers}
    assert found["num_records"] in (1, 2000, 3, 1000)


class Vanished(Exception):
    """The client is gone."""


def under_way(shelf: Path) -> list[Path]:
    """The files that are being received."""
    return [*(shelf / ".uploads").glob("*")]


def test_a_client_that_vanishes_half_way_leaves_nothing(live: str, shelf: Path) -> None:
    def half() -> Iterator[bytes]:
        yield part("file", ROW * 20_000, "facts.jsonl")[:-2]
        until(lambda: under_way(shelf) != [])
        raise Vanished

    for _ in range(6):
        with pytest.raises(Vanished):
            httpx.post(f"{live}{LIST}", content=half(), headers=FORM)
    until(lambda: httpx.post(f"{live}{LIST}", files={"file": ("facts.jsonl", ROW)}).status_code == 201)
    until(lambda: seen(shelf) == ["facts/dataset.toml", "facts/facts.jsonl"])


def until(is_so: Callable[[], bool], seconds: float = 20) -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not become so"


def test_a_server_that_is_killed_half_way_leaves_what_was_there(shelf: Path, database_url: str) -> None:
    with server_process(shelf, database_url) as (url, process):
        before = httpx.post(f"{url}{LIST}", files={"file": ("facts.jsonl", ROW)}).json()

        def body() -> Iterator[bytes]:
            yield part("file", ROW * 20_000, "facts.jsonl")[:-2]
            until(lambda: under_way(shelf) != [])
            process.kill()
            yield ROW * 20_000

        with pytest.raises(httpx.TransportError):
            httpx.post(f"{url}{LIST}", content=body(), headers=FORM)
    assert under_way(shelf) != []
    with server_process(shelf, database_url) as (url, _):
        assert httpx.get(f"{url}{LIST}").json() == {"datasets": [before], "problems": []}
        after = httpx.post(f"{url}{LIST}", files={"file": ("facts.jsonl", ROW * 2)}).json()
    assert after["num_records"] == 2
    assert seen(shelf) == ["facts/dataset.toml", "facts/facts.jsonl"]
