from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from turnmill.server.row_answers import DatasetRow, RowPage

FACTS = "/v1/training/datasets/by-name/facts"
OPENAI = 'file = "facts.jsonl"\ndialect = "openai"'


def row(number: int, **more: Any) -> bytes:
    return json.dumps({"instruction": f"question {number}", "output": "b", **more}).encode() + b"\n"


def chat(*texts: str, **more: Any) -> bytes:
    turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    return json.dumps({"messages": turns, **more}).encode() + b"\n"


@pytest.fixture
def page(client: TestClient, put) -> Callable[..., Any]:
    """Asks for rows of a dataset of ten; gives the answer."""
    put(rows=b"".join(row(number) for number in range(1, 11)))
    return lambda **asked: client.get(f"{FACTS}/rows", params=asked)


def test_pages_go_on_by_cursor_to_the_end(page) -> None:
    found, asked = [], {"limit": 4}
    while asked:
        answer = page(**asked)
        RowPage.model_validate_json(answer.content)
        found.append([one["line"] for one in answer.json()["rows"]])
        asked = {"limit": 4, "cursor": answer.json()["next"]} if answer.json()["next"] else {}
    assert found == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
    assert (answer.json()["num_records"], answer.json()["scanned"]) == (10, 2)


def test_a_cursor_of_a_changed_file_is_refused(page, put) -> None:
    cursor = page(limit=1).json()["next"]
    put(rows=row(1) + row(2) + row(3))
    answer = page(cursor=cursor)
    assert (answer.status_code, answer.json()["code"]) == (409, "dataset-changed")


def made(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "asked",
    [
        {"cursor": "none"}, {"cursor": made("a 1 1")}, {"cursor": made(f"{'0' * 64} -1 1")}, {"cursor": "é"},
        {"limit": 0}, {"limit": 201}, {"role": "judge"}, {"min_turns": -1}, {"reasoning": "perhaps"}, {"q": "x" * 1001},
    ],
)  # fmt: skip
def test_what_no_page_can_be_asked_for(page, asked: dict[str, Any]) -> None:
    answer = page(**asked)
    assert (answer.status_code, answer.json()["code"]) == (400, "request-not-valid")


def test_a_cursor_that_somebody_made_up_leads_nowhere(page) -> None:
    sha256 = page().json()["sha256"]
    for start, line in ((10**17, 1), (7, 10**17), (0, 0)):
        answer = page(cursor=made(f"{sha256} {start} {line}"))
        assert answer.status_code == 200


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({"q": "QUESTION 1"}, [1, 10]), ({"code": "any"}, []), ({"code": "none", "limit": 1}, [1]),
        ({"q": "", "limit": 2}, [1, 2]),
        ({"source": "facts", "min_turns": 2, "max_turns": 2, "min_characters": 12}, [10]), ({"role": "tool"}, []),
        ({"reasoning": "true"}, []), ({"calls": "false", "tools": "false", "max_characters": 11}, list(range(1, 10))),
    ],
)  # fmt: skip
def test_rows_are_asked_for_by_what_they_are(page, asked: dict[str, Any], lines: list[int]) -> None:
    assert [one["line"] for one in page(**asked).json()["rows"]] == lines


def test_a_page_that_did_not_change_is_not_sent_again(page, client: TestClient) -> None:
    answer = page()
    assert client.get(f"{FACTS}/rows", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


def test_a_row_is_shown_as_it_lies_and_as_it_is_read(client: TestClient, put) -> None:
    put(rows=chat("a", "<think>why</think>b", id="x7", big=10**30) + chat("a", "b"), manifest=OPENAI)
    found = client.get(f"{FACTS}/rows/1").json()
    DatasetRow.model_validate(found)
    assert json.loads(found["raw"]) == found["record"]
    assert found["record"]["big"] == 10**30
    said = [(one["role"], one["channel"], one["text"]) for one in found["conversation"]["messages"]]
    assert said == [("user", None, "a"), ("assistant", "analysis", "why"), ("assistant", "final", "b")]
    assert found["conversation"]["verbatim"] == {"1": "<think>why</think>b"}
    assert (found["previous"], found["next"], found["dialect"], found["code"]) == (None, 2, "openai", None)


def test_a_rejected_row_says_which_message_is_at_fault(client: TestClient, put) -> None:
    put(rows=chat("a", "b", "c", " ") + chat("a", "b"), manifest=OPENAI)
    found = client.get(f"{FACTS}/rows/1").json()
    assert (found["code"], found["at"], found["stage"], found["id"]) == ("blank-text", 3, "check", None)
    assert found["conversation"]["messages"][2]["text"] == "c"


def test_a_row_is_shown_mended(client: TestClient, put) -> None:
    put(rows=chat("a", "b", "c") + chat("a", "b"), manifest=OPENAI)
    found = client.get(f"{FACTS}/rows/1", params={"repair": ["strip-ends", "drop-trailing-user"]}).json()
    assert (found["code"], found["repairs"]) == (None, ["drop-trailing-user"])
    assert len(found["conversation"]["messages"]) == 2
    assert len(found["record"]["messages"]) == 3


@pytest.mark.parametrize(("size", "is_parsed"), [(2 << 20, True), (5 << 20, False)])
def test_of_a_large_row_the_beginning_is_shown(client: TestClient, put, size: int, is_parsed: bool) -> None:
    put(rows=row(1, input="x" * size))
    found = client.get(f"{FACTS}/rows/1").json()
    assert (len(found["raw"]), found["truncated"]) == (1 << 20, True)
    assert found["bytes"] > size
    assert [found[key] is not None for key in ("record", "conversation")] == [is_parsed] * 2


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("rows/11", 404, "row-unknown"), ("rows/0", 400, "request-not-valid"), ("rows/x", 400, "request-not-valid"),
        ("rows/1?repair=mine.py:mend", 400, "repair-unknown"), ("rows/1?dialect=mine.py:read", 400, "dialect-unknown"),
        ("rows/1?repair=none", 400, "repair-unknown"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_shown(page, client: TestClient, path: str, status: int, code: str) -> None:
    answer = client.get(f"{FACTS}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize("part", ["rows", "rows/1", "profile", "file"])
def test_none_of_that_name_has_rows(client: TestClient, put, part: str) -> None:
    put()
    answer = client.get(f"/v1/training/datasets/by-name/none/{part}")
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset-unknown")


def test_no_answer_about_rows_says_where_they_lie(client: TestClient, put, shelf: Path) -> None:
    put(rows=b'{"a": 1}\n', manifest='file = "facts.jsonl"\ndialect = "auto"')
    for part in ("rows", "rows/1", "profile", "check"):
        answer = client.get(f"{FACTS}/{part}")
        assert str(shelf) not in answer.text
        assert "/proc" not in answer.text


def test_the_rows_of_a_problem_can_be_looked_at(client: TestClient, put, shelf: Path) -> None:
    put("no dataset?", chat("a") + b"{\n" + chat("a", "b", "c"), 'file = "no dataset?.jsonl"\ndialect = "openai"')
    item = "/v1/training/datasets/by-name/no%20dataset%3F"
    assert client.get(item).json()["code"] == "dataset-not-usable"
    page, profile = client.get(f"{item}/rows").json(), client.get(f"{item}/profile").json()
    assert [one["code"] for one in page["rows"]] == ["no-assistant-turn", "invalid-json", "last-turn-not-assistant"]
    assert (page["num_records"], profile["accepted"], sum(profile["codes"].values())) == (None, 0, 3)
    assert client.get(f"{item}/rows/2").json()["raw"] == "{"
    assert client.post(f"{item}/replay", json={"repairs": ["drop-trailing-user"]}).json()["passes"] == 1


@pytest.mark.parametrize(
    "manifest", ['file = "gone.jsonl"', "file = ", 'file = "facts.jsonl"\nname = "../x"', 'file = "facts.parquet"']
)
def test_problems_without_rows_are_none(client: TestClient, put, manifest: str) -> None:
    put(manifest=manifest)
    answer = client.get(f"{FACTS}/rows")
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset-not-usable")


def test_a_problem_that_is_too_large_is_not_looked_at(serve, put) -> None:
    put(rows=row(1, input="x" * 5000))
    answer = serve(max_bytes=1000).get(f"{FACTS}/rows")
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset-not-usable")


def test_a_problem_that_links_out_of_the_shelf_is_not_looked_at(client: TestClient, put, shelf: Path) -> None:
    outside = shelf.parent / "outside"
    put().rename(outside)
    shelf.joinpath("facts").symlink_to(outside)
    answer = client.get(f"{FACTS}/rows")
    assert (answer.status_code, answer.json()["code"]) == (404, "dataset-not-usable")
