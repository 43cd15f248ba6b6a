"""What a client that means harm sends, and what becomes of it: nothing."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from live_server import live
from turnmill.http_connection import Connection
from turnmill.server import guard, jobs
from turnmill.shelf.access import make_token, revoke_token
from turnmill.shelf.database import Database

LIST, JOBS = "/v1/training/datasets", "/v1/training/jobs"
ITEM = f"{LIST}/by-name"
ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'
SECRET = b'{"instruction": "the secret", "input": "", "output": "of another directory"}\n'
JSON = {"Content-Type": "application/json"}
OUTSIDE = [
    "..%2foutside", "%2e%2e%2foutside", "%252e%252e%252foutside", "..%5coutside", "/etc/passwd",
    "%2fetc%2fpasswd", "facts/../../outside", "facts%2f..%2f..%2foutside", "facts%00.jsonl", ".uploads", ".locks",
    "C:%5coutside", "%c0%ae%c0%ae%2foutside",
]  # fmt: skip


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A dataset that is not on the shelf."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "dataset.toml").write_text('file = "outside.jsonl"')
    (folder / "outside.jsonl").write_bytes(SECRET)
    return folder


def state(place: Path) -> dict[str, bytes]:
    """Every file below a directory, but for locks."""
    files = (path for path in place.rglob("*") if path.is_file() and path.suffix not in (".lock", ".db"))
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leaves_the_shelf(client: TestClient, put, shelf: Path, outside: Path, name: str) -> None:
    put()
    before = state(shelf), state(outside)
    asked = [
        client.get(f"{ITEM}/{name}"), client.get(f"{ITEM}/{name}/versions"), client.get(f"{ITEM}/{name}/check"),
        client.get(f"{ITEM}/facts/diff?against={name}"), client.get(f"{LIST}/preview?name={name}"),
        client.post(f"{ITEM}/{name}/explain", json={"line": 1, "template": "chatml"}),
        client.put(f"{ITEM}/{name}", content=ROW), client.delete(f"{ITEM}/{name}"),
        client.delete(f"{ITEM}/{name}?force=true"),
        client.post(LIST, files={"file": (f"{name}.jsonl", ROW)}),
        client.post(LIST, files={"file": ("x.jsonl", ROW)}, data={"filename": f"{name}.jsonl"}),
        client.post(JOBS, json={"dataset": name}),
    ]  # fmt: skip
    assert {400, 404, 405} >= {answer.status_code for answer in asked}
    assert not any("secret" in answer.text or "root:" in answer.text for answer in asked)
    assert (state(shelf), state(outside)) == before


@pytest.mark.parametrize("link", ["directory", "manifest", "rows", "rows in a linked directory"])
def test_no_link_leads_out_of_the_shelf(client: TestClient, put, shelf: Path, outside: Path, link: str) -> None:
    if link == "directory":
        (shelf / "facts").symlink_to(outside)
    else:
        folder = put("facts", manifest='file = "in/outside.jsonl"' if link.endswith("directory") else "")
        (folder / "facts.jsonl").unlink()
        target = {"manifest": "dataset.toml", "rows": "facts.jsonl"}.get(link, "in")
        (folder / target).unlink(missing_ok=True)
        (folder / target).symlink_to({"manifest": outside / "dataset.toml", "rows": outside / "outside.jsonl"}.get(
            link, outside))  # fmt: skip
    before = state(outside)
    listed = client.get(LIST)
    asked = [listed, client.get(f"{LIST}/preview?name=facts"), client.post(JOBS, json={"dataset": "facts"})]
    asked += [client.put(f"{ITEM}/facts", content=ROW), client.delete(f"{ITEM}/facts")]
    assert [problem["dir"] for problem in listed.json()["problems"]] == ["facts"]
    assert not any("secret" in answer.text for answer in asked)
    assert max(answer.status_code for answer in asked) < 500
    assert state(outside) == before


def test_a_directory_that_becomes_a_link_behind_the_listing_is_not_followed(
    client: TestClient, put, shelf: Path, outside: Path
) -> None:
    put()
    assert client.get(LIST).json()["problems"] == []
    shutil.rmtree(shelf / "facts")
    outside.joinpath("facts.jsonl").write_bytes(SECRET)
    (shelf / "facts").symlink_to(outside)
    before = state(outside)
    asked = [client.get(f"{LIST}/preview?name=facts"), client.put(f"{ITEM}/facts", content=ROW)]
    asked += [client.post(JOBS, json={"dataset": "facts"}), client.delete(f"{ITEM}/facts")]
    assert not any("secret" in answer.text for answer in asked)
    assert state(outside) == before
    assert not (shelf / "facts").is_symlink()


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[::1"])
@pytest.mark.parametrize("path", [LIST, "/healthz", "/openapi.json", f"{LIST}/preview?name=facts"])
def test_a_name_that_was_made_to_point_here_opens_nothing(client: TestClient, put, host: str, path: str) -> None:
    put()
    answer = client.get(path, headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "host-not-allowed")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example", "http://localhost:1"]
)
def test_no_page_of_another_origin_makes_the_server_do_anything(client: TestClient, put, origin: str) -> None:
    put()
    sent: list[tuple[str, str, Any]] = [
        ("POST", LIST, {"files": {"file": ("x.jsonl", ROW)}}), ("PUT", f"{ITEM}/facts", {"content": ROW}),
        ("DELETE", f"{ITEM}/facts", {}), ("POST", JOBS, {"json": {"dataset": "facts"}}),
        ("POST", f"{ITEM}/facts/explain", {"json": {"line": 1, "template": "chatml"}}),
    ]  # fmt: skip
    for method, path, body in sent:
        answer = client.request(method, path, headers={"Origin": origin}, **body)
        assert (answer.status_code, answer.json()["code"]) == (403, "origin-not-allowed")


def test_no_page_of_another_origin_reads_an_answer(client: TestClient, put) -> None:
    put()
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}
    for answer in (client.get(LIST, headers=asked), client.options(f"{ITEM}/facts", headers=asked)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", [JOBS, f"{ITEM}/facts/explain", f"{JOBS}/{'0' * 32}/cancel"])
def test_only_files_may_be_large(serve: Callable[..., TestClient], put, path: str) -> None:
    put()
    client = serve(max_body_bytes=1000, max_bytes=10_000)
    answer = client.post(path, content=b'{"x": "' + b"a" * 5000 + b'"}', headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    answer = client.post(path, content=(b'{"x": "', b"a" * 5000, b'"}'), headers=JSON)  # of no stated length
    assert path.endswith("/cancel") or answer.status_code == 413


@pytest.mark.parametrize("length", ["9" * 5000, "9" * 19, "-1", "1e3", "", "٣"])
def test_lengths_that_are_none(client: TestClient, length: str) -> None:
    answer = client.post(JOBS, content=b"{}", headers={"Content-Length": length.encode()})
    assert answer.status_code in (400, 413)


def test_a_body_is_not_unpacked(client: TestClient, shelf: Path) -> None:
    bomb = gzip.compress(bytes(10 << 20))
    for method, path in (("POST", JOBS), ("PUT", f"{ITEM}/facts"), ("POST", LIST)):
        answer = client.request(method, path, content=bomb, headers={"Content-Encoding": "gzip", **JSON})
        assert (answer.status_code, answer.json()["code"]) == (415, "encoding-not-taken")
    assert state(shelf) == {}


@pytest.mark.parametrize("pack", [gzip.compress, lambda rows: b"\x28\xb5\x2f\xfd" + rows])
@pytest.mark.parametrize("query", ["", "?dialect=auto", "?dialect=openai", "?format=json"])
def test_a_file_is_not_unpacked(client: TestClient, shelf: Path, pack: Any, query: str) -> None:
    answer = client.put(f"{ITEM}/facts{query}", content=pack(ROW * 1000))
    assert (answer.status_code, answer.json()["code"]) == (400, "file-not-valid")
    assert state(shelf) == {}


@pytest.mark.parametrize("packed", ["a value that is large", "a page that is large", "many rows"])
def test_a_file_that_unpacks_to_gigabytes_is_refused(
    serve: Callable[..., TestClient], shelf: Path, packed: str
) -> None:
    rows, value = {"a value that is large": (5000, "x" * 10**6), "many rows": (10**7, "x")}.get(packed, (200, ""))
    zeros = pa.array(bytes(rows), pa.int8()) if packed != "a page that is large" else None
    column = pa.array(["x" * 10**6] * rows) if zeros is None else pa.DictionaryArray.from_arrays(zeros, [value])
    bomb = io.BytesIO()
    table = pa.table({"instruction": column, "output": column})
    pq.write_table(table, bomb, compression="zstd", use_dictionary=zeros is not None)
    client = serve(max_bytes=16 << 20)
    assert bomb.tell() < 100_000
    answer = client.put(f"{ITEM}/bomb?format=parquet", content=bomb.getvalue())
    assert (answer.status_code, "unpacks to too much" in answer.json()["detail"]) == (400, True)
    assert state(shelf) == {}


def test_a_client_that_sends_nothing_is_given_up_and_its_place_is_free(
    serve: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "SILENCE_S", 0.2)
    client = serve(max_uploads=1)
    with live(client.app) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), 30) as silent:
            silent.sendall(f"PUT {ITEM}/facts HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nab".encode())
            answer = silent.recv(1 << 16)
            assert b" 408 " in answer.partition(b"\r\n")[0]
            assert b'"body-late"' in answer + silent.recv(1 << 16)
            assert silent.recv(1) == b""  # and it is hung up
    assert client.put(f"{ITEM}/facts", content=ROW).status_code == 201


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_connection_without_a_whole_request_is_closed(client: TestClient, sent: bytes) -> None:
    with live(client.app, http=Connection, timeout_keep_alive=1) as url:
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 30) as silent:
            silent.sendall(sent)
            assert silent.recv(1) == b""
        with httpx.Client(base_url=url) as good:
            assert [good.get("/healthz").status_code for _ in range(3)] == [200] * 3


def test_a_head_that_comes_in_drips_is_not_waited_for(client: TestClient) -> None:
    with live(client.app, http=Connection, timeout_keep_alive=1) as url:
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 30) as slow, suppress(OSError):
            slow.settimeout(0.1)
            slow.sendall(b"GET /healthz HTTP/1.1\r\n")
            for _ in range(100):
                slow.sendall(b"X: a\r\n")
                with suppress(TimeoutError):
                    assert slow.recv(1) == b""
                    return
        pytest.fail("it was waited for")


def test_a_stream_ends_with_its_token(
    serve: Callable[..., TestClient], put, database: Database, tmp_path: Path
) -> None:
    put()
    headers = {"Authorization": f"Bearer {make_token(database, 'mine', 'write')}"}
    client = serve(jobs=tmp_path / "jobs")
    job = client.post(JOBS, json={"dataset": "facts"}, headers=headers).json()["id"]
    revoking = threading.Timer(0.3, revoke_token, (database, "mine"))
    revoking.start()
    told = client.get(f"{JOBS}/{job}/events", headers=headers)  # the job never ends
    revoking.join()
    assert '"queued"' in told.text
    assert client.get(JOBS, headers=headers).status_code == 401


def test_so_many_streams_are_kept_up_at_once(client: TestClient, put, monkeypatch: pytest.MonkeyPatch) -> None:
    put()
    job = client.post(JOBS, json={"dataset": "facts"}).json()["id"]
    client.post(f"{JOBS}/{job}/cancel")
    monkeypatch.setattr(jobs, "MAX_STREAMS", 1)
    for _ in range(3):  # each makes room when it ends
        assert client.get(f"{JOBS}/{job}/events").status_code == 200
    monkeypatch.setattr(jobs, "MAX_STREAMS", 0)
    answer = client.get(f"{JOBS}/{job}/events")
    assert (answer.status_code, answer.json()["code"]) == (503, "too-many-streams")


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"seed": ' + b"9" * 5000 + b"}", b'{"dataset": "\xff"}', b"{", b""])
def test_json_that_none_can_read_is_refused(client: TestClient, body: bytes) -> None:
    assert client.post(JOBS, content=body, headers=JSON).status_code == 400


@pytest.mark.parametrize(
    "asked",
    [
        {"dataset": "facts", **{f"key{number}": 1 for number in range(5000)}},
        {"dataset": "facts", "k" * 100_000: 1},
        {"dataset": "facts", "kind": "k" * 100_000},
        {"dataset": "d" * 100_000},
        {"dataset": "facts", "kind": "\ud800", "\udfff": 1},
    ],
)
def test_a_refusal_is_short_whatever_was_sent(client: TestClient, asked: Any) -> None:
    answer = client.post(JOBS, json=asked) if "\ud800" not in asked.values() else client.post(
        JOBS, content=json.dumps(asked).encode(), headers=JSON)  # fmt: skip
    assert (answer.status_code, len(answer.content) < 4000) == (400, True)
    assert len(answer.json()["faults"]) <= 20


@pytest.mark.parametrize("row", [b"[" * 100_000, b'{"instruction": "a", "output": "b", "n": 1' + b"0" * 9000 + b"}",
                                 b'{"instruction": "\\ud800", "output": "b"}', b"\x00" * 100])  # fmt: skip
@pytest.mark.parametrize("query", ["", "?dialect=alpaca"])
def test_rows_that_none_can_read_are_refused(client: TestClient, row: bytes, query: str) -> None:
    assert client.put(f"{ITEM}/facts{query}", content=row + b"\n").status_code == 400


PLUG_INS = ["/tmp/x.py:f", "x.py:f", "../x.py:f", "https://evil.example/x.py:f", "x:f", 'alpaca"\nfile = "/etc/passwd"']


@pytest.mark.parametrize("named", PLUG_INS)
def test_nothing_that_a_request_names_is_loaded(client: TestClient, put, tmp_path: Path, named: str) -> None:
    put()
    mark = tmp_path / "loaded"
    Path(tmp_path / "x.py").write_text(f"open({str(mark)!r}, 'w')\nf = None\n")
    asked = [
        client.put(f"{ITEM}/other", params={"dialect": named}, content=ROW),
        client.post(LIST, files={"file": ("other.jsonl", ROW)}, data={"dialect": named}),
        client.post(JOBS, json={"dataset": "facts", "kind": "export", "to": named}),
        client.post(JOBS, json={"dataset": "facts", "kind": "prepare", "model": named}),
        client.post(f"{ITEM}/facts/explain", json={"line": 1, "template": named}),
        client.post(f"{ITEM}/facts/explain", json={"line": 1, "model": named}),
    ]
    assert {answer.status_code for answer in asked} == {400}
    assert not mark.exists()


@pytest.mark.parametrize("dialect", ["/tmp/x.py:f", "x.py:f"])
def test_nothing_that_a_manifest_names_is_loaded(client: TestClient, put, dialect: str) -> None:
    put(manifest=f'file = "facts.jsonl"\ndialect = "{dialect}"')
    assert [problem["dir"] for problem in client.get(LIST).json()["problems"]] == ["facts"]


@pytest.mark.parametrize("name", ["/etc", ".", "..", "tiny/..", "org/model", "https://evil.example/m", "file:///etc"])
def test_only_the_models_of_the_server_are_opened(
    serve: Callable[..., TestClient], put, tmp_path: Path, name: str
) -> None:
    put()
    client = serve(models={"tiny": tmp_path}, jobs=tmp_path / "jobs")
    asked = [
        client.post(f"{ITEM}/facts/explain", json={"line": 1, "model": name}),
        *(client.post(JOBS, json={"dataset": "facts", "kind": kind, "model": name}) for kind in ("prepare", "audit")),
    ]
    assert {answer.status_code for answer in asked} == {400}


@pytest.mark.parametrize(
    "template",
    ["{% for a in range(10**9) %}{% for b in range(10**9) %}{% endfor %}{% endfor %}", "{{ 'a' * 10**12 }}",
     "{% include '/etc/passwd' %}", "{{ ''.__class__.__mro__ }}", "{{ cycler.__init__.__globals__.os.popen('id') }}"],
)  # fmt: skip
def test_a_strangers_template_does_nothing(client: TestClient, put, template: str) -> None:
    put()
    answer = client.post(f"{ITEM}/facts/explain", json={"line": 1, "template_text": template})
    assert (answer.status_code, answer.json()["code"]) == (400, "template-not-usable")
    assert "root:" not in answer.text
    assert "uid=" not in answer.text


def test_made_up_methods_make_no_counters(client: TestClient) -> None:
    for number in range(20):
        client.request(f"BREW{number}", LIST)
    assert "BREW" not in client.get("/metrics").text


@pytest.mark.parametrize("broken", ["shelf", "jobs", "model"])
def test_no_problem_says_where_on_the_server_something_lies(
    serve: Callable[..., TestClient], put, tmp_path: Path, shelf: Path, broken: str
) -> None:
    put()
    (tmp_path / "model").mkdir()
    client = serve(models={"tiny": tmp_path / "model"}, jobs=tmp_path / "jobs")
    if broken != "model":
        place = {"shelf": shelf, "jobs": tmp_path / "jobs"}[broken]
        shutil.rmtree(place, ignore_errors=True)
        place.write_text("a file")
    asked = [
        client.get(LIST), client.get("/readyz"),
        client.put(f"{ITEM}/facts", content=ROW), client.delete(f"{ITEM}/facts"),
        client.post(JOBS, json={"dataset": "facts", "kind": "prepare"}),
        client.post(f"{ITEM}/facts/explain", json={"line": 1, "model": "tiny"}),
    ]  # fmt: skip
    assert not [answer.text for answer in asked if str(tmp_path) in answer.text or "/tmp" in answer.text]
    assert 500 not in {answer.status_code for answer in asked}


def test_what_commands_said_of_the_servers_directories_is_not_told(
    serve: Callable[..., TestClient], put, tmp_path: Path, database: Database
) -> None:
    from turnmill.shelf.job_folder import JobFolder
    from turnmill.shelf.jobs import Jobs

    put()
    client = serve(models={"tiny": tmp_path}, jobs=tmp_path / "jobs")
    job = client.post(JOBS, json={"dataset": "facts", "kind": "prepare"}).json()["id"]
    Jobs(database).take("worker")
    said = f"cannot read {tmp_path}/jobs/{job}/x and {tmp_path}/tokenizer.json"
    JobFolder(tmp_path / "jobs" / job).log.write_text(said)
    Jobs(database).finish(job, "worker", "failed", error=said, result={"files": [said]})
    asked = [client.get(f"{JOBS}{rest}").text for rest in ("", f"/{job}", f"/{job}/log", f"/{job}/events")]
    assert not [text for text in asked if str(tmp_path) in text]
    assert all("tiny/tokenizer.json" in text for text in asked)


def test_tokens_stand_in_no_answer_and_no_log(
    client: TestClient, put, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    put()
    token = make_token(database, "mine", "admin")
    headers = {"Authorization": f"Bearer {token}"}
    answers = [client.get(path, headers=headers) for path in (LIST, "/metrics", "/none", "/openapi.json")]
    answers += [client.get(LIST, headers={"Authorization": f"Bearer {token}x"})]
    with database.writing() as session:
        session.execute(text("drop table dataset_versions"))
        session.execute(text("drop table datasets"))
    answers += [client.get(LIST, headers=headers)]
    assert answers[-1].status_code == 503
    assert token not in "".join(answer.text for answer in answers) + caplog.text


def test_a_row_is_quoted_in_eighty_characters_at_most(client: TestClient) -> None:
    private = "private" * 100
    answer = client.put(f"{ITEM}/facts", content=json.dumps({"instruction": private, "output": [private]}).encode())
    assert (answer.status_code, private[:85] in answer.text) == (400, False)


def test_millions_of_faults_are_not_counted(client: TestClient) -> None:
    for query in ("", "?dialect=alpaca"):
        answer = client.put(f"{ITEM}/facts{query}", content=b"{}\n" * 20_000)
        assert (answer.status_code, len(answer.json()["faults"])) == (400, 20)
        assert answer.json()["detail"].startswith(("10,000 faults and more", "10,001 faults"))


def test_pipes_and_devices_are_no_files(client: TestClient, put) -> None:
    folder = put()
    (folder / "facts.jsonl").unlink()
    os.mkfifo(folder / "facts.jsonl")
    assert "a pipe" in client.get(LIST).json()["problems"][0]["error"]
