from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from turnmill.server.app import create_app
from turnmill.server.service import Serve
from turnmill.shelf.database import Database

HERE = "http://localhost"
"""What the server of tests is called by."""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """An empty shelf."""
    folder = tmp_path / "datasets_training"
    folder.mkdir()
    return folder


@pytest.fixture
def serve(shelf: Path, database: Database) -> Iterator[Callable[..., TestClient]]:
    """Serves the shelf with the options that are given; the clients say what a server raises as the server does."""
    clients: list[TestClient] = []

    def start(**options: Any) -> TestClient:
        app = create_app(shelf, database, Serve(**{"jobs": shelf.parent / "jobs", **options}))
        client = TestClient(app, base_url=HERE, raise_server_exceptions=False)
        clients.append(client.__enter__())
        return client

    yield start
    for client in clients:
        client.__exit__()


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a tiny model with weights, a tokenizer and a template."""
    from tiny_chat_models import save_chat_model

    return save_chat_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def client(serve: Callable[..., TestClient]) -> TestClient:
    """A client of a server with the usual options."""
    return serve()


ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'


@pytest.fixture
def put(shelf: Path) -> Callable[..., Path]:
    """Puts a dataset on the shelf; gives its directory."""

    def call(name: str = "facts", rows: bytes = ROW, manifest: str = "") -> Path:
        folder = shelf / name
        folder.mkdir(exist_ok=True)
        folder.joinpath("dataset.toml").write_text(manifest or f'file = "{name}.jsonl"')
        folder.joinpath(f"{name}.jsonl").write_bytes(rows)
        return folder

    return call
