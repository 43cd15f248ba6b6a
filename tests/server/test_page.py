from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from turnmill.errors import UsageError
from turnmill.server import page
from turnmill.server.app import create_app
from turnmill.server.service import Serve
from turnmill.shelf.access import make_token
from turnmill.shelf.database import Database

DOCUMENT = f"<!doctype html><html><head>{page.BASE}{page.API}</head></html>"


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle of one document and one script."""
    folder = tmp_path / "static"
    folder.joinpath("assets").mkdir(parents=True)
    folder.joinpath("index.html").write_text(DOCUMENT)
    folder.joinpath("assets", "index-abc.js").write_text("1")
    monkeypatch.setattr(page, "BUNDLE", folder)
    return folder


def test_the_front_leads_to_the_page(client: TestClient, bundle: Path) -> None:
    answer = client.get("/")
    assert answer.url.path == "/page/"
    assert '<base href="/page/" />' in answer.text


@pytest.mark.parametrize("path", ["/page", "/page/", "/page/datasets/facts/rows/3", "/page/a%2Fb", "/page/x.js"])
def test_every_screen_is_the_same_document(client: TestClient, bundle: Path, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.text == DOCUMENT
    assert answer.headers["cache-control"] == "no-cache"


def test_the_document_says_where_the_interface_is(serve: Callable[..., TestClient], bundle: Path) -> None:
    text = serve(api_prefix="/api").get("/page/").text
    assert '<meta name="turnmill-api" content="/api" />' in text


def test_mounted_in_another_app(shelf: Path, database: Database, bundle: Path) -> None:
    make_token(database, "admin", "admin")
    outer = FastAPI()
    outer.mount("/data", create_app(shelf, database))
    client = TestClient(outer, base_url="http://localhost")
    text = client.get("/data/").text
    assert '<base href="/data/page/" />' in text
    assert 'content="/data/v1"' in text
    assert client.get("/data/v1/training/datasets").status_code == 401


def test_assets_are_kept_for_ever(client: TestClient, bundle: Path) -> None:
    answer = client.get("/page/assets/index-abc.js")
    assert (answer.text, answer.headers["content-type"].partition(";")[0]) == ("1", "text/javascript")
    assert "immutable" in answer.headers["cache-control"]


def test_a_bundle_that_is_built_anew_is_served(client: TestClient, bundle: Path) -> None:
    assert client.get("/page/assets/index-def.js").status_code == 404
    bundle.joinpath("assets", "index-def.js").write_text("2")
    os.utime(bundle / "index.html", (1, 1))
    assert client.get("/page/assets/index-def.js").text == "2"


def test_assets_travel_packed_to_whoever_takes_them_so(client: TestClient, bundle: Path) -> None:
    bundle.joinpath("assets", "index-abc.js").write_text("1;" * 10_000)
    sizes = {}
    for encoding in ("gzip", "identity"):
        answer = client.get("/page/assets/index-abc.js", headers={"Accept-Encoding": encoding})
        assert answer.text == "1;" * 10_000
        sizes[encoding] = int(answer.headers["content-length"])
    assert sizes["gzip"] < 1000 < sizes["identity"]


@pytest.mark.parametrize("name", ["gone.js", "..%2Findex.html", "%2e%2e%2f%2e%2e%2fpage.py", "..%5Cpage.py"])
def test_nothing_else_is_served(client: TestClient, bundle: Path, name: str) -> None:
    answer = client.get(f"/page/assets/{name}")
    assert answer.text == DOCUMENT or answer.json()["code"] == "not-found"


@pytest.mark.parametrize("path", ["/page/", "/page/assets/index-abc.js"])
def test_only_the_page_itself_can_run(client: TestClient, bundle: Path, path: str) -> None:
    headers = client.get(path).headers
    assert "script-src 'self';" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_without_a_bundle_it_says_how_to_get_one(client: TestClient, bundle: Path) -> None:
    bundle.joinpath("index.html").unlink()
    answer = client.get("/page/")
    assert answer.status_code == 404
    assert "make ui" in answer.text


def test_the_page_needs_no_token_and_the_rest_does(client: TestClient, database: Database, bundle: Path) -> None:
    make_token(database, "admin", "admin")
    assert [client.get(path).status_code for path in ("/", "/page/", "/page/settings")] == [200, 200, 200]
    assert [client.get(path).status_code for path in ("/v1/training/datasets", "/pages", "/openapi.json")] == [401] * 3
    assert client.post("/page/").status_code == 401


@pytest.mark.parametrize("prefix", ["/page", "/page/v1"])
def test_the_interface_is_not_put_where_everything_is_open(shelf: Path, database: Database, prefix: str) -> None:
    with pytest.raises(UsageError, match="expected another one"):
        create_app(shelf, database, Serve(api_prefix=prefix))
