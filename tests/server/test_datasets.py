from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio import from_thread
from anyio.to_thread import run_sync
from fastapi.testclient import TestClient
from sqlalchemy import text

from turnmill.server.answers import DatasetList
from turnmill.server.app import create_app
from turnmill.server.listings import Listings
from turnmill.server.written import Remembered, Written
from turnmill.shelf.database import Database
from turnmill.shelf.records import Records
from turnmill.shelf.scan import Listing, Shelf

ROW = b'{"instruction": "a", "input": "", "output": "b"}\n'
LIST = "/v1/training/datasets"
PREVIEW = f"{LIST}/preview"


def test_a_listing_says_the_record_and_the_manifest(client: TestClient, put) -> None:
    put("facts", manifest='file = "facts.jsonl"\ndescription = "d"\nversion = "1"\ngenerator = "g.py"')
    (found,) = client.get(LIST).json()["datasets"]
    DatasetList.model_validate_json(client.get(LIST).content)
    told = {key: found[key] for key in ("name", "description", "format", "file", "version", "generator", "dir")}
    assert told == {
        "name": "facts", "description": "d", "format": "jsonl", "file": "facts.jsonl", "version": "1",
        "generator": "g.py", "dir": "facts",
    }  # fmt: skip
    assert (found["filename"], found["size_bytes"], found["num_records"]) == ("facts.jsonl", 49, 1)
    assert (found["status"], found["synced_at"], len(found["sha256"])) == ("stored", None, 64)
    assert found["created_at"].endswith("Z")


def test_datasets_come_by_name_and_problems_beside_them(client: TestClient, put) -> None:
    put("b")
    put("a", manifest='file = "a.jsonl"\nname = "z"')
    put("broken", manifest="file = ")
    put("empty", rows=b"")
    listing = client.get(LIST).json()
    assert [found["name"] for found in listing["datasets"]] == ["b", "z"]
    assert [(problem["dir"], "error" in problem) for problem in listing["problems"]] == [
        ("broken", True), ("empty", True),
    ]  # fmt: skip


def test_clients_of_another_prefix_are_served(serve: Callable[..., TestClient], put) -> None:
    put()
    client = serve(api_prefix="/v1/gb")
    answer = client.post("/v1/gb/training/datasets", files={"file": ("more.jsonl", ROW)})
    assert answer.status_code == 201
    names = [found["name"] for found in client.get("/v1/gb/training/datasets").json()["datasets"]]
    assert (names, client.get(LIST).status_code) == (["facts", "more"], 404)


def test_a_shelf_that_is_not_there_has_no_datasets(tmp_path: Path, database: Database) -> None:
    with TestClient(create_app(tmp_path / "none", database), base_url="http://localhost") as client:
        assert client.get(LIST).json() == {"datasets": [], "problems": []}


def test_a_shelf_that_cannot_be_read_is_told_without_its_path(tmp_path: Path, database: Database) -> None:
    place = tmp_path / "file"
    place.write_text("")
    with TestClient(create_app(place, database), base_url="http://localhost") as client:
        answer = client.get(LIST)
    assert (answer.status_code, answer.json()["code"]) == (503, "shelf-not-readable")
    assert str(tmp_path) not in answer.text


def test_what_another_process_does_is_seen_at_once(client: TestClient, put, database: Database) -> None:
    folder = put()
    before = client.get(LIST).json()["datasets"][0]
    Records(database).mark_synced("facts", before["sha256"])
    assert client.get(LIST).json()["datasets"][0]["status"] == "synced"
    folder.joinpath("facts.jsonl").write_bytes(ROW * 2)
    after = client.get(LIST).json()["datasets"][0]
    assert (after["id"], after["num_records"], after["status"]) == (before["id"], 2, "stored")


def test_nothing_new_is_not_sent_again(client: TestClient, put) -> None:
    folder = put()
    tag = client.get(LIST).headers["etag"]
    again = client.get(LIST, headers={"If-None-Match": f'"other", {tag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    folder.joinpath("facts.jsonl").write_bytes(ROW * 2)
    assert client.get(LIST, headers={"If-None-Match": tag}).status_code == 200


def test_pages_only_where_they_are_asked_for(client: TestClient, put) -> None:
    for number in range(5):
        put(f"d{number}")
    put("broken", manifest="file = ")
    names, problems, more = [], [], {}
    while more is not None:
        page = client.get(LIST, params={"limit": 2, **more}).json()
        names.append([found["name"] for found in page["datasets"]])
        problems.append(len(page["problems"]))
        more = {"cursor": page["next"]} if "next" in page else None
    assert (names, problems) == ([["d0", "d1"], ["d2", "d3"], ["d4"]], [1, 0, 0])
    assert "next" not in client.get(LIST).json()


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "cursor=%25", "cursor=%C3%A9", "cursor=_w=="])
def test_pages_that_are_none(client: TestClient, query: str) -> None:
    answer = client.get(f"{LIST}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "request-not-valid")


def test_another_database_has_no_datasets(shelf: Path, put, database: Database) -> None:
    put()
    app = create_app(shelf, database, other_databases={"eval": database})
    with TestClient(app, base_url="http://localhost") as client:
        assert client.get(LIST, params={"db": "eval"}).json() == {"datasets": [], "problems": []}
        assert len(client.get(LIST, params={"db": ""}).json()["datasets"]) == 1
        for path in (LIST, f"{PREVIEW}?name=facts"):
            assert client.get(path, params={"db": "none", "name": "facts"}).json()["code"] == "database-unknown"
        assert client.get(PREVIEW, params={"db": "eval", "name": "facts"}).status_code == 404
        assert client.post(LIST, params={"db": "eval"}, files={"file": ("a.jsonl", ROW)}).status_code == 400


def test_a_preview_shows_the_first_lines(client: TestClient, put) -> None:
    put(rows=ROW * 150)
    line = ROW.decode().rstrip()
    assert client.get(PREVIEW, params={"name": "facts", "lines": 2}).json() == {
        "name": "facts", "lines": [line] * 2, "num_records": 150, "truncated": True,
    }  # fmt: skip
    assert len(client.get(PREVIEW, params={"name": "facts"}).json()["lines"]) == 100
    assert not client.get(PREVIEW, params={"name": "facts", "lines": 1000}).json()["truncated"]


def test_a_preview_follows_the_file(client: TestClient, put) -> None:
    for count in (1, 2):
        put(rows=ROW * count)
        assert client.get(PREVIEW, params={"name": "facts"}).json()["num_records"] == count


@pytest.mark.parametrize("lines", ["0", "1001", "-1", "x", ""])
def test_so_many_lines_are_not_shown(client: TestClient, put, lines: str) -> None:
    put()
    assert client.get(PREVIEW, params={"name": "facts", "lines": lines}).status_code == 400


@pytest.mark.parametrize(
    ("name", "code"), [("none", "dataset-unknown"), ("broken", "dataset-not-usable"), ("../x", "dataset-unknown")]
)
def test_a_preview_of_none(client: TestClient, put, name: str, code: str) -> None:
    put("broken", manifest="file = ")
    answer = client.get(PREVIEW, params={"name": name})
    assert (answer.status_code, answer.json()["code"]) == (404, code)


def test_a_dataset_may_be_called_preview(client: TestClient, put) -> None:
    for name in ("preview", "by-name", "versions"):
        put(name)
        assert client.get(f"{LIST}/by-name/{name}").json()["name"] == name


def test_a_database_that_is_gone_and_comes_back(client: TestClient, put, database: Database) -> None:
    put()
    with database.writing() as session:
        session.execute(text("alter table datasets rename to elsewhere"))
    answer = client.get(LIST)
    assert (answer.status_code, answer.json()["code"]) == (503, "database-unavailable")
    with database.writing() as session:
        session.execute(text("alter table elsewhere rename to datasets"))
    assert client.get(LIST).status_code == 200


class SlowShelf(Shelf):
    """Waits in its scans until it is let go on."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.begun: list[int] = []
        self.go_on = threading.Event()

    def listing(self) -> Listing:
        self.begun.append(len(self.begun))
        assert self.go_on.wait(10)
        return super().listing()


def test_who_asks_during_a_scan_shares_the_next_one(shelf: Path, put, database: Database) -> None:
    slow = SlowShelf(shelf)
    listings = Listings(slow, Records(database))

    async def ask() -> list[int]:
        first = asyncio.create_task(listings.current())
        while not slow.begun:
            await asyncio.sleep(0)
        put()
        others = [asyncio.create_task(listings.current()) for _ in range(10)]
        await asyncio.sleep(0)
        slow.go_on.set()
        found = [await task for task in (first, *others)]
        return [len(one.listing.datasets) for one in found[1:]]

    assert asyncio.run(ask()) == [1] * 10
    assert len(slow.begun) == 2


def test_what_did_not_change_is_not_written_again(shelf: Path, put, database: Database) -> None:
    put()
    listings = Listings(Shelf(shelf), Records(database))
    first = listings.scan()
    assert listings.scan() is first
    Records(database).mark_synced("facts", first.listing.datasets[0].content.sha256)
    assert listings.scan() is not first


def test_answers_are_remembered_up_to_so_many_bytes() -> None:
    made: list[int] = []
    remembered = Remembered(max_bytes=8 * 100)

    async def get(number: int, size: int = 90) -> None:
        await remembered.get((number,), lambda: (made.append(number), Written(b"x" * size, ""))[1])

    async def ask() -> None:
        for number in (*range(8), 0, 8, 0, 1):
            await get(number)
        for _ in range(2):
            await get(100, size=101)

    asyncio.run(ask())
    assert made == [*range(8), 8, 1, 100, 100]


def test_rows_of_another_format_are_shown_as_they_travel(client: TestClient, shelf: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    (shelf / "chats").mkdir()
    (shelf / "chats/dataset.toml").write_text('file = "c.json"\nformat = "json"')
    (shelf / "chats/c.json").write_text(json.dumps([chat] * 3))
    answer = client.get(PREVIEW, params={"name": "chats", "lines": 1}).json()
    assert [json.loads(line)["messages"] for line in answer["lines"]] == [chat["messages"]]
    assert (answer["num_records"], answer["truncated"]) == (3, True)


def test_a_scan_has_a_thread_where_all_others_wait_for_it(shelf: Path, put, database: Database) -> None:
    put()
    listings = Listings(Shelf(shelf), Records(database))

    async def ask() -> list[int]:
        waits = [run_sync(from_thread.run, listings.current) for _ in range(100)]
        return [len(found.listing.datasets) for found in await asyncio.wait_for(asyncio.gather(*waits), 30)]

    assert anyio.run(ask) == [1] * 100
