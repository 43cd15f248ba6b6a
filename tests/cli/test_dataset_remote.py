from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from live_server import live
from turnmill.server.app import create_app
from turnmill.server.service import Serve
from turnmill.shelf.database import Database

Run = Callable[..., Any]
ROW = '{"instruction": "What is the capital of Peru?", "input": "", "output": "Lima."}\n'


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "facts.jsonl"
    file.write_text(ROW * 3)
    return file


@pytest.fixture
def server(tmp_path: Path) -> Iterator[list[str]]:
    """Options that name a server with an empty shelf."""
    database = Database(tmp_path / "turnmill.db")
    with live(create_app(tmp_path / "shelf", database, Serve())) as url:
        yield ["--server", f"{url}/v1"]
    database.close()


def test_a_file_is_uploaded_seen_and_removed(turnmill: Run, server: list[str], rows: Path, tmp_path: Path) -> None:
    assert turnmill("dataset", "add", rows, *server).out == "3 rows: facts is on the shelf\n"
    assert (tmp_path / "shelf" / "facts" / "facts.jsonl").read_text() == ROW * 3
    listed = turnmill("dataset", "list", *server)
    assert (listed.code, listed.out.split()[5:7]) == (0, ["facts", "3"])
    shown = turnmill("dataset", "show", "facts", "--json", *server).json
    assert (shown["num_records"], shown["status"]) == (3, "stored")
    assert turnmill("dataset", "preview", "facts", "--lines", "2", *server).out == ROW * 2
    assert turnmill("dataset", "validate", "facts", *server).out == "3 of 3 rows are sound: facts can be used\n"
    refused = turnmill("dataset", "remove", "facts", *server)
    assert (refused.code, "nothing was removed" in refused.err) == (2, True)
    assert turnmill("dataset", "remove", "facts", "--yes", *server).code == 0
    assert turnmill("dataset", "list", "--json", *server).json == {"datasets": [], "problems": []}


def test_a_name_is_given_with_the_file(turnmill: Run, server: list[str], rows: Path) -> None:
    turnmill("dataset", "add", rows, "--name", "poems", *server)
    assert [found["name"] for found in turnmill("dataset", "list", "--json", *server).json["datasets"]] == ["poems"]


def test_every_fault_of_a_refused_file_is_said(turnmill: Run, server: list[str], rows: Path, tmp_path: Path) -> None:
    rows.write_text(ROW + "no row\n" + '{"instruction": 1}\n')
    refused = turnmill("dataset", "add", rows, *server)
    assert (refused.code, refused.out) == (2, "")
    assert "facts.jsonl:2" in refused.err
    assert "(file-not-valid)" in refused.err
    assert "3: " in refused.err
    assert not (tmp_path / "shelf" / "facts").exists()


def test_a_problem_of_the_servers_shelf_is_said(turnmill: Run, server: list[str], tmp_path: Path) -> None:
    (tmp_path / "shelf" / "empty").mkdir(parents=True)
    (tmp_path / "shelf" / "empty" / "dataset.toml").write_text("")
    assert "problem: empty: dataset.toml names no data file" in turnmill("dataset", "list", *server).err
    refused = turnmill("dataset", "validate", "empty", *server)
    assert (refused.code, "names no data file" in refused.err) == (3, True)


@pytest.mark.parametrize("verb", ["show", "preview", "validate"])
def test_an_unknown_dataset_is_told(turnmill: Run, server: list[str], verb: str) -> None:
    refused = turnmill("dataset", verb, "../none", *server)
    assert (refused.code, refused.out) == (2, "")
