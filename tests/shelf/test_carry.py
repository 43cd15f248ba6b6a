from __future__ import annotations

import base64
import hashlib
import io
import pickle
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sidecar_stand_in import CHATS, OTHER_ROWS, ROWS, WAITS, go, instant, of, served, stored, until
from turnmill.errors import UsageError
from turnmill.files.publish import publish
from turnmill.http_service import address_of, bound
from turnmill.shelf import carry
from turnmill.shelf.carry import READ_BYTES, Carrier, SidecarDown, SidecarRefused
from turnmill.shelf.content import travelling_lines
from turnmill.shelf.manifest import Manifest

SECRET = "0123456789abcdef-secret"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "sidecar"


@pytest.fixture
def carrier(data) -> Iterator[Carrier]:
    """One who knows the secret of a sidecar whose runs end at once."""
    with served(data, SECRET, stages=instant) as url, Carrier(url, SECRET) as carrier:
        yield carrier


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> None:
    monkeypatch.setattr(carry, "BACKOFF_S", 0.001)


def carried(url: str) -> Carrier:
    return Carrier(url.removesuffix("/v1"), SECRET)


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address that nobody listens at."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize("how", ["path", "bytes", "lines"])
@pytest.mark.parametrize("count", [1, 2, 3, 4 * READ_BYTES // len(ROWS)])
def test_a_dataset_arrives_byte_for_byte(carrier, data, tmp_path, how, count) -> None:
    rows = ROWS * count
    (tmp_path / "rows").write_bytes(rows)
    content = {"path": tmp_path / "rows", "bytes": rows, "lines": iter(rows.splitlines())}[how]
    said = carrier.start("one", "facts.jsonl", content, {"epochs": 2})
    assert (said["id"], said["options"]) == ("one", {"epochs": 2})
    assert said["sha256"] == hashlib.sha256(rows).hexdigest()
    assert stored(data) == {"facts.jsonl": rows}


def test_what_is_stored_is_not_carried_again(carrier) -> None:
    first = carrier.start("one", "facts.jsonl", ROWS, {})
    assert carrier.start("two", "facts.jsonl", None, {})["sha256"] == first["sha256"]


def test_rows_of_a_dialect_are_carried_as_they_travel(carrier, data, tmp_path) -> None:
    (tmp_path / "chats.jsonl").write_bytes(CHATS * 3)
    lines = travelling_lines(tmp_path, Manifest("chats", "chats.jsonl", dialect="auto"))
    assert carrier.start("one", "chats.jsonl", lines, {})["num_records"] == 3


def test_a_run_is_followed_to_its_end(carrier, data) -> None:
    carrier.start("one", "facts.jsonl", ROWS, {})
    until(lambda: carrier.status("one")["state"] == "done")
    assert carrier.metrics("one") == {"metrics": [], "truncated": False}
    assert carrier.log("one") == {"text": "", "offset": 0, "next_offset": 0}
    assert carrier.artefacts("one") == []


def test_a_published_file_is_fetched(carrier, data) -> None:
    carrier.start("one", "facts.jsonl", ROWS, {})
    publish({"sub/a b.bin": b"weights"}, data / "runs" / "one" / "trained")
    target = io.BytesIO()
    carrier.fetch("one", "sub/a b.bin", target)
    assert target.getvalue() == b"weights"
    with pytest.raises(SidecarRefused, match="published no"):
        carrier.fetch("one", "none.bin", target)


def test_a_run_is_cancelled(data) -> None:
    with served(data, stages=of(WAITS)) as url, Carrier(f"{url}/") as carrier:
        carrier.start("one", "facts.jsonl", ROWS, {})
        carrier.start("two", "facts.jsonl", ROWS, {})
        assert carrier.cancel("two")["state"] == "cancelled"
        until((data / "runs" / "one" / "seen").exists)
        go(data / "runs" / "one")
        until(lambda: carrier.status("one")["state"] == "done")


@pytest.mark.parametrize(
    ("ask", "status", "code", "said"),
    [
        (lambda one: one.start("one", "../a.jsonl", ROWS, {}), 400, "dataset-name-invalid", "'../a.jsonl'"),
        (lambda one: one.start("one", "a.jsonl", ROWS, {"device": "cuda"}), 400, "option-unknown", "'device'"),
        (lambda one: one.start("one", "a.jsonl", b"", {}), 400, "dataset-content-invalid", "empty"),
        (lambda one: one.start("one", "a.jsonl", b"no json", {}), 400, "dataset-rows-invalid", "a.jsonl:1: "),
        (lambda one: one.start("one", "absent.jsonl", None, {}), 400, "dataset-absent", "absent.jsonl"),
        (lambda one: one.status("no/such run"), 404, "not-found", "Not Found"),
        (lambda one: one.status("none"), 404, "run-unknown", "'none'"),
        (lambda one: one.cancel("none"), 404, "run-unknown", "'none'"),
    ],
)
def test_a_refusal_is_told_in_the_sidecars_words(carrier, ask, status, code, said) -> None:
    with pytest.raises(SidecarRefused) as caught:
        ask(carrier)
    refused = pickle.loads(pickle.dumps(caught.value))
    assert (refused.status, refused.code) == (status, code)
    assert said in str(refused)


def test_a_job_that_is_another_is_refused(carrier) -> None:
    carrier.start("one", "facts.jsonl", ROWS, {})
    with pytest.raises(SidecarRefused, match="another sha256") as caught:
        carrier.start("one", "facts.jsonl", OTHER_ROWS, {})
    assert caught.value.status == 409


def test_a_body_above_the_limit_is_refused_though_it_is_still_sent(data) -> None:
    with served(data, max_bytes=1_000) as url, Carrier(url) as carrier, pytest.raises(SidecarRefused) as caught:
        carrier.start("one", "facts.jsonl", ROWS * 100_000, {}, deadline_s=5)
    assert (caught.value.status, caught.value.code) == (413, "body-too-large")


def test_a_secret_that_is_another_is_refused_though_the_body_is_still_sent(carrier, data) -> None:
    with Carrier(carrier.url, "another-secret-of-somebody") as other, pytest.raises(SidecarRefused) as caught:
        other.start("one", "facts.jsonl", ROWS * 100_000, {}, deadline_s=5)
    assert caught.value.status == 401
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("busy", [502, 503, 504])
def test_a_busy_sidecar_is_asked_again_with_the_whole_dataset(endpoint, busy) -> None:
    asked = endpoint(lambda _, number: (busy, {"detail": "later"}) if number < 3 else (201, {"id": "one"}))
    with carried(asked.url) as carrier:
        assert carrier.start("one", "facts.jsonl", ROWS, {"epochs": 2}) == {"id": "one"}
    content = base64.b64encode(ROWS).decode()
    said = {"epochs": 2, "job": "one", "dataset": "facts.jsonl", "dataset_content": content}
    assert asked.requests == [{"path": "/training/job_start", **said}] * 4
    assert set(asked.keys) == {f"Bearer {SECRET}"}


def test_a_sidecar_that_stays_busy_is_down(endpoint) -> None:
    asked = endpoint(lambda *_: (503, {"code": "not-at-work", "detail": "no run is begun now"}))
    with carried(asked.url) as carrier, pytest.raises(SidecarDown, match="503: no run is begun now"):
        carrier.status("one", deadline_s=0.1)
    assert len(asked.requests) > 1


def test_a_sidecar_that_is_not_there_is_down(nobody) -> None:
    with Carrier(nobody, SECRET) as carrier:
        with pytest.raises(SidecarDown, match=f"the sidecar at {nobody} is down: .*refused") as caught:
            carrier.start("one", "facts.jsonl", ROWS, {}, deadline_s=0.1)
        assert not carrier.is_ready()
    assert caught.value.next_step == f"turnmill sidecar --data DIR --models NAME=DIR --port {nobody.rpartition(':')[2]}"
    assert SECRET not in str(caught.value)


def test_a_sidecar_that_comes_back_is_found(data) -> None:
    with ThreadPoolExecutor(1) as threads, bound("127.0.0.1", 0) as place, Carrier(address_of(place)) as carrier:
        waiting = threads.submit(carrier.start, "one", "facts.jsonl", ROWS, {})  # nobody listens yet
        with served(data, place=place):
            assert waiting.result()["id"] == "one"


@pytest.mark.parametrize("answer", [(200, b"<html>"), (201, b""), (200, b"\xff")])
def test_another_service_there_is_told(endpoint, answer) -> None:
    asked = endpoint(lambda *_: answer)
    with carried(asked.url) as carrier, pytest.raises(SidecarDown, match="another service"):
        carrier.status("one")


@pytest.mark.parametrize(("status", "body"), [(500, b"<html>"), (302, b""), (418, {"code": 1}), (404, b"\xff")])
def test_refusals_that_are_no_problems_are_told(endpoint, status, body) -> None:
    asked = endpoint(lambda *_: (status, body))
    with carried(asked.url) as carrier, pytest.raises(SidecarRefused) as caught:
        carrier.status("one")
    assert (caught.value.status, caught.value.code) == (status, "unknown")


@pytest.mark.parametrize(
    "url", ["", "host:80", "ftp://host", "http://", "http://user:pass@host", "http://host?secret=1", "file:///etc"]
)
def test_what_is_no_address_is_refused_without_its_password(url) -> None:
    with pytest.raises(UsageError, match="address") as caught:
        Carrier(url)
    assert "pass@" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(carrier, tmp_path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        carrier.start("one", "facts.jsonl", tmp_path / "none", {})
