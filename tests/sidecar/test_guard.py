from __future__ import annotations

import os
from pathlib import Path

import pytest

from turnmill.errors import UsageError
from turnmill.http_service import is_loopback
from turnmill.sidecar.guard import SECRET_VARIABLE, read_secret, require_secret

SECRET = "0123456789abcdef-secret"
PATHS = [
    ("GET", "/readyz"),
    ("POST", "/training/job_start"),
    ("GET", "/training/jobs"),
    ("GET", "/training/jobs/one"),
    ("GET", "/training/jobs/one/metrics"),
    ("GET", "/training/jobs/one/log"),
    ("GET", "/training/jobs/one/artefacts"),
    ("GET", "/training/jobs/one/artefacts/config.json"),
    ("POST", "/training/jobs/one/cancel"),
    ("GET", "/openapi.json"),
    ("GET", "/nowhere"),
    ("GET", "/healthz/"),
    ("GET", "//healthz"),
]
WRONG = [
    "",
    "Bearer",
    "Bearer ",
    f"Basic {SECRET}",
    f"Bearer {SECRET}x",
    f"Bearer {SECRET[:-1]}",
    SECRET,
    "Bearer \xff",
]


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_nothing_is_answered_without_the_secret(open_sidecar, method, path) -> None:
    answer = open_sidecar(SECRET).request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (401, "secret-missing")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("given", WRONG)
def test_another_secret_is_refused_and_never_said(open_sidecar, given) -> None:
    answer = open_sidecar(SECRET).get("/training/jobs", headers={"Authorization": given.encode("latin-1")})
    assert answer.status_code == 401
    assert SECRET[:-1] not in answer.text


@pytest.mark.parametrize("given", [f"Bearer {SECRET}", f"bearer  {SECRET}"])
def test_the_secret_opens(open_sidecar, given) -> None:
    assert open_sidecar(SECRET).get("/training/jobs", headers={"Authorization": given}).json() == {"jobs": []}


def test_whether_it_is_alive_needs_no_secret(open_sidecar) -> None:
    assert open_sidecar(SECRET).get("/healthz").json() == {"status": "ok"}


def test_it_is_ready_while_it_works(sidecar) -> None:
    assert sidecar.get("/readyz").json()["models"] == ["tiny"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", "", "[::1", "127.0.0.2"])
def test_another_name_that_points_here_is_refused(sidecar, host) -> None:
    answer = sidecar.get("/healthz", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (403, "host-refused")


@pytest.mark.parametrize("host", ["localhost", "localhost:8766", "127.0.0.1:1", "[::1]:8766"])
def test_names_of_this_machine_are_answered(sidecar, host) -> None:
    assert sidecar.get("/healthz", headers={"Host": host}).status_code == 200


def test_bound_to_other_addresses_any_name_is_answered(open_sidecar) -> None:
    sidecar = open_sidecar(SECRET, "0.0.0.0")
    assert sidecar.get("/healthz", headers={"Host": "trainer.example"}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_a_page_of_others_is_refused(sidecar, origin) -> None:
    answer = sidecar.post("/training/job_start", headers={"Origin": origin})
    assert (answer.status_code, answer.json()["code"]) == (403, "origin-refused")


def test_websockets_are_closed(sidecar) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), sidecar.websocket_connect("/training/jobs"):
        pass


def test_a_secret_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    assert read_secret(file) == SECRET


def test_a_secret_of_the_environment_is_taken_from_it(monkeypatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)
    assert read_secret(None) == SECRET
    assert SECRET_VARIABLE not in os.environ
    assert read_secret(None) is None


@pytest.mark.parametrize("content", [b"", b"short", b"with a space in it, long", "ä".encode() * 20, b"\xff" * 20])
def test_what_is_no_secret_is_refused_without_being_said(tmp_path: Path, content) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_secret(file)
    assert "with a space" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("10.0.0.1", False), ("trainer.example", False), ("", False)],
)  # fmt: skip
def test_only_loopback_needs_no_secret(host, is_local) -> None:
    assert is_loopback(host) is is_local
    require_secret(host, SECRET)
    if is_local:
        require_secret(host, None)
    else:
        with pytest.raises(UsageError, match="no secret"):
            require_secret(host, None)
