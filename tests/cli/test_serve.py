from __future__ import annotations

from pathlib import Path

import pytest

from turnmill.cli.serve import _options, _worker_arguments
from turnmill.cli.shelf_options import places
from turnmill.errors import redacted
from turnmill.shelf.work import SECRETS

HOW = {"lease_s": 30.0, "sidecar": None, "sidecar_secret_file": None, "api_prefix": "/v1", "read_only": False}
HOW |= {"hosts": (), "max_megabytes": 64}
ADDRESS = "postgresql://user:hunter2@host/name?password=hunter3"


def test_who_lists_the_processes_sees_no_password() -> None:
    said = _worker_arguments(places(ADDRESS, None, None), (), HOW)
    assert not [word for word in said if "hunter" in word or "host" in word]
    assert "TURNMILL_DATABASE" in SECRETS  # nor does a command of a job inherit it


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--database", ADDRESS),
        ("worker", "--database", ADDRESS),
        ("access-token", "list", "--database", ADDRESS),
        ("access-token", "new", "one", "--database", ADDRESS),
        ("job", "list", "--database", ADDRESS),
        ("serve", "--other-database", f"one={ADDRESS}", "--database", ADDRESS),
        ("job", "list", "--server", "ftp://user:hunter2@host/v1?password=hunter3"),
        ("job", "list", "--server", "http://user:hunter2@127.0.0.1:1/v1"),
    ],
)
def test_no_message_says_a_password(turnmill, tmp_path: Path, monkeypatch, arguments) -> None:
    monkeypatch.chdir(tmp_path)
    here = [word.replace("@host/", "@127.0.0.1:1/") for word in arguments]
    answer = turnmill(*here)
    assert answer.code != 0
    assert "hunter" not in answer.out + answer.err


def test_the_database_of_the_environment_is_the_one(turnmill, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TURNMILL_DATABASE", str(tmp_path / "other.db"))
    assert turnmill("access-token", "new", "one").code == 0
    assert (tmp_path / "other.db").exists()


def test_other_addresses_need_a_token(turnmill, tmp_path: Path) -> None:
    answer = turnmill("serve", "--host", "0.0.0.0", "--port", "0", "--database", tmp_path / "turnmill.db")
    assert (answer.code, "no access token was made" in answer.err) == (2, True)


@pytest.mark.parametrize(("host", "name"), [("127.0.0.5", "127.0.0.5"), ("::1", "[::1]"), ("localhost", "localhost")])
def test_a_server_answers_to_the_address_that_it_has(tmp_path: Path, host: str, name: str) -> None:
    assert name in _options(places(str(tmp_path / "x.db"), None, None), (), host, HOW).allowed_hosts


def test_a_name_of_a_database_hides_its_passwords() -> None:
    assert "hunter" not in redacted(f"cannot open {ADDRESS}: no")
