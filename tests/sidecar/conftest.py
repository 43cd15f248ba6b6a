from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from sidecar_stand_in import settings
from turnmill.sidecar.app import create_app


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "sidecar"


@pytest.fixture
def open_sidecar(data: Path) -> Iterator[Callable[..., TestClient]]:
    """A sidecar in this process, until the test ends."""
    with ExitStack() as opened:

        def call(secret: str | None = None, host: str = "127.0.0.1", **more) -> TestClient:
            app = create_app(settings(data, **more), secret, host)
            return opened.enter_context(TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False))

        yield call


@pytest.fixture
def sidecar(open_sidecar) -> TestClient:
    return open_sidecar()
