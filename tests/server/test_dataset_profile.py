from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from turnmill.codes import CODES
from turnmill.server.row_answers import Codes, DatasetProfile, DatasetReplay, Plugins

FACTS = "/v1/training/datasets/by-name/facts"
OPENAI = 'file = "facts.jsonl"\ndialect = "openai"'


def chat(*texts: str) -> bytes:
    turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
    return json.dumps({"messages": turns}).encode() + b"\n"


def test_a_check_counts_rows_and_codes(client: TestClient, put) -> None:
    put(rows=chat("a", "b") + b"\n" + chat("a") + chat("c", "b"), manifest=OPENAI)
    found = client.get(f"{FACTS}/check").json()
    told = {key: found[key] for key in ("name", "rows", "accepted", "codes", "complete")}
    assert told == {
        "name": "facts", "rows": 3, "accepted": 2, "codes": {"no-assistant-turn": 1}, "complete": True
    }  # fmt: skip
    assert [(fault["line"], fault["code"]) for fault in found["faults"]] == [(3, "no-assistant-turn")]


def test_a_check_says_what_the_command_line_says(client: TestClient, put, shelf: Path, turnmill) -> None:
    put(rows=chat("a", "b") + chat("c", "") + chat("d", "b"), manifest=OPENAI)
    found = client.get(f"{FACTS}/check").json()
    lines = turnmill("check", shelf / "facts/facts.jsonl", "--json").rows
    left = [line for line in lines if line.get("code")]
    assert (found["rows"], found["accepted"]) == (len(lines), len(lines) - len(left))
    assert [fault["code"] for fault in found["faults"]] == [line["code"] for line in left]


def test_a_profile_says_what_a_check_says_and_more(client: TestClient, put) -> None:
    put(rows=chat("a", "b") * 20 + chat("a"), manifest=OPENAI)
    answer = client.get(f"{FACTS}/profile")
    DatasetProfile.model_validate_json(answer.content)
    found, check = answer.json(), client.get(f"{FACTS}/check").json()
    assert {key: found[key] for key in check} == check
    assert (found["sources"], found["roles"]) == ({"facts": 21}, {"assistant": 20, "user": 21})
    assert client.get(f"{FACTS}/profile", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304


def test_a_profile_follows_the_file(client: TestClient, put) -> None:
    put(rows=chat("a", "b"), manifest=OPENAI)
    first = client.get(f"{FACTS}/profile").json()
    put(rows=chat("a", "b") * 2, manifest=OPENAI)
    second = client.get(f"{FACTS}/profile").json()
    assert (first["rows"], second["rows"]) == (1, 2)
    assert first["sha256"] != second["sha256"]


def test_bars_of_a_profile_lead_to_as_many_rows(client: TestClient, put) -> None:
    put(rows=chat("a", "b") * 3 + chat("a", "b", "c", "d" * 60), manifest=OPENAI)
    profile = client.get(f"{FACTS}/profile").json()
    for what in ("turns", "characters"):
        edges, counts = profile[what]["edges"], profile[what]["counts"]
        for at, count in enumerate(counts[:-1]):
            asked = {f"min_{what}": edges[at], f"max_{what}": edges[at + 1] - 1}
            assert len(client.get(f"{FACTS}/rows", params=asked).json()["rows"]) == count


def test_a_replay_says_which_rows_would_pass(client: TestClient, put, shelf: Path) -> None:
    folder = put(rows=chat("a", "b") * 20 + chat("a", "b", "c"), manifest=OPENAI)
    before = folder.joinpath("facts.jsonl").read_bytes()
    answer = client.post(f"{FACTS}/replay", json={"repairs": ["drop-trailing-user"]})
    DatasetReplay.model_validate_json(answer.content)
    found = answer.json()
    assert (found["rows"], found["rejected"], found["passes"]) == (21, 1, 1)
    assert found["moves"] == [{"code": "last-turn-not-assistant", "becomes": "passes", "rows": 1, "lines": [21]}]
    assert folder.joinpath("facts.jsonl").read_bytes() == before
    one = client.post(f"{FACTS}/replay", json={"line": 21}).json()
    assert (one["rows"], one["passes"]) == (1, 0)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"repairs": ["none"]}, "repair-unknown"), ({"repairs": ["x.py:y"]}, "repair-unknown"),
        ({"dialect": "auto"}, "dialect-unknown"), ({"dialect": "/etc/x.py:y"}, "dialect-unknown"),
        ({"line": 2}, "row-unknown"), ({"line": 0}, "request-not-valid"), ({"content": "mine"}, "request-not-valid"),
        ({"repairs": ["strip-ends"] * 33}, "request-not-valid"),
    ],
)  # fmt: skip
def test_replays_that_are_refused(client: TestClient, put, asked: dict[str, Any], code: str) -> None:
    put()
    answer = client.post(f"{FACTS}/replay", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_codes_say_what_they_mean(client: TestClient) -> None:
    answer = client.get("/v1/training/codes")
    Codes.model_validate_json(answer.content)
    assert {one["code"]: one["means"] for one in answer.json()["codes"]} == {
        name: code.means for name, code in CODES.items()
    }


@pytest.mark.parametrize(("family", "name"), [("dialects", "openai"), ("repairs", "strip-ends")])
def test_plugins_are_told_as_on_the_command_line(client: TestClient, turnmill, family: str, name: str) -> None:
    answer = client.get(f"/v1/training/plugins/{family}")
    Plugins.model_validate_json(answer.content)
    assert answer.json()["plugins"] == turnmill("list", family, "--json").json
    assert name in [one["name"] for one in answer.json()["plugins"]]
    assert client.get("/v1/training/plugins/scorers").json()["code"] == "request-not-valid"


def test_a_file_is_given_as_it_is_and_never_as_a_page(client: TestClient, put) -> None:
    rows = b'{"instruction": "<script>", "output": "b"}\n' * 20_000
    put(rows=rows)
    answer = client.get(f"{FACTS}/file")
    assert answer.content == rows
    headers = answer.headers
    assert (headers["content-type"], headers["x-content-type-options"]) == ("application/octet-stream", "nosniff")
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''facts.jsonl"
    assert headers["content-length"] == str(len(rows))


@pytest.mark.parametrize("file", ['a"b.jsonl', "ä ;x.jsonl"])
def test_a_name_of_a_file_stays_in_its_header(client: TestClient, put, file: str) -> None:
    folder = put(manifest=f"file = {json.dumps(file)}")
    folder.joinpath(file).write_bytes(b'{"instruction": "a", "output": "b"}\n')
    said = client.get(f"{FACTS}/file").headers["content-disposition"]
    assert said.isascii()
    assert '"' not in said
    assert " " not in said.removeprefix("attachment; ")
