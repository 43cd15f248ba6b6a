from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from turnmill.errors import UsageError
from turnmill.executors.limited import Limits
from turnmill.server.explained import Explained
from turnmill.shelf import rows
from turnmill.shelf.foreign_template import explain_foreign
from turnmill.shelf.manifest import Manifest

FACTS = "/v1/training/datasets/by-name/facts"
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def row(instruction: str, output: str = "b") -> bytes:
    return json.dumps({"instruction": instruction, "output": output}).encode() + b"\n"


def chat(question: str, answer: str | None = "b") -> bytes:
    turns = [("user", question), ("assistant", answer)]
    messages = [{"role": role, "content": content} for role, content in turns if content is not None]
    return json.dumps({"messages": messages}).encode() + b"\n"


def test_a_diff_tells_shared_rows_whatever_files_look_like(client: TestClient, put) -> None:
    put(rows=row("a") + row("b") + row("b") + row("c"))
    put("chats", rows=chat("c") + chat("d") + chat("x", None), manifest='file = "chats.jsonl"\ndialect = "openai"')
    assert client.get(f"{FACTS}/diff?against=chats").json() == {
        "name": "facts", "against": "chats", "rows": [4, 2], "rejected": [0, 1], "shared": 1, "only": [2, 1],
        "lines": [[1, 2, 3], [2]],
    }  # fmt: skip


def test_a_diff_with_itself_shares_everything(client: TestClient, put) -> None:
    put(rows=row("a") * 3)
    found = client.get(f"{FACTS}/diff?against=facts").json()
    assert (found["shared"], found["only"], found["lines"]) == (1, [0, 0], [[], []])
    assert client.get(f"{FACTS}/diff").status_code == 400


def test_a_diff_that_takes_too_long_is_none(client: TestClient, put, monkeypatch: pytest.MonkeyPatch) -> None:
    one = (put(rows=row("a")), Manifest("facts", "facts.jsonl"))
    with pytest.raises(rows.TookTooLong):
        rows.shared_rows(one, one, max_seconds=-1)


@pytest.fixture
def explained(client: TestClient, put) -> Callable[..., Any]:
    """Explains a line of three rows; gives the answer."""
    put(rows=row("a") + b"\n" + row("second") + row("c", ""))

    def call(line: int, **asked: Any) -> Any:
        return client.post(f"{FACTS}/explain", json={"line": line, **asked})

    return call


def test_a_row_is_explained_as_on_the_command_line(explained, shelf: Path, turnmill) -> None:
    answer = explained(3, template="chatml")
    Explained.model_validate_json(answer.content)
    command = turnmill("explain", shelf / "facts/facts.jsonl", "1", "--template", "chatml", "--json")
    assert answer.json() == command.json
    assert "second" in answer.json()["text"]


def test_a_row_that_leaves_is_explained_with_its_code(explained) -> None:
    found = explained(4, template="chatml").json()
    assert (found["row"], found["code"]) == (2, "blank-text")


def test_a_row_is_put_under_a_model_by_its_name(serve, put, tiny: Path) -> None:
    put(rows=row("a"))
    client = serve(models={"small": tiny})
    asked = {"line": 1, "model": "small", "template": "chatml"}
    found = client.post(f"{FACTS}/explain", json=asked).json()
    assert len(found["input_ids"]) == len(found["labels"]) > 3
    for name in (str(tiny), "none", "smollm2"):
        answer = client.post(f"{FACTS}/explain", json={"line": 1, "model": name})
        assert (answer.status_code, answer.json()["code"]) == (400, "model-unknown")
        assert str(tiny.parent) not in answer.text.replace(name, "")


def test_a_strangers_template_renders_the_row(explained) -> None:
    found = explained(3, template_text=TEMPLATE).json()
    assert found["text"] == "<|user|>second<|end|><|assistant|>b<|end|>"
    assert [turn["trained"] for turn in found["turns"]] == [False, True]


@pytest.fixture
def source(write) -> dict[str, Any]:
    """Of a config, with one row."""
    return {"name": "facts", "data": [str(write("facts.jsonl", row("a")))], "dialect": "alpaca"}


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for %}", "not Jinja"),
        ("{{ ''.__class__.__mro__ }}", "cannot be used"),
        ("{% include '/etc/passwd' %}", "cannot be used"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "loop steps"),
        ("{{ 'x' * 10 ** 10 }}", "cannot be used"),
        ("nothing of the row", "cannot be used"),
    ],
)
def test_hostile_templates_are_refused(source: dict[str, Any], template: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        explain_foreign(source, 0, template, {})


def test_a_strangers_template_that_is_refused_is_a_problem(explained) -> None:
    answer = explained(1, template_text="{% for %}")
    assert (answer.status_code, answer.json()["code"]) == (400, "template-not-usable")


def test_a_strangers_template_that_takes_too_much_is_ended(source: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="was ended"):
        explain_foreign(source, 0, TEMPLATE, {}, limits=Limits(wall_s=0.01))


@pytest.mark.parametrize(("bound", "value"), [("NOFILE", 3), ("FSIZE", 0), ("CORE", 0)])
def test_a_strangers_template_runs_where_nothing_can_be_opened(source, bound: str, value: int) -> None:
    script = f"""
import resource, sys
from turnmill.shelf import foreign_template
asked = foreign_template.Asked({source!r}, 0, {TEMPLATE!r}, {{}}, foreign_template.Limits())
assert foreign_template._answer(asked).explanation
sys.exit(resource.getrlimit(resource.RLIMIT_{bound})[1])
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == value


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"line": 2, "template": "chatml"}, "row-unknown"),
        ({"line": 99, "template": "chatml"}, "row-unknown"),
        ({"line": 0, "template": "chatml"}, "request-not-valid"),
        ({"line": 1}, "request-not-valid"),
        ({"line": 1, "template": "chatml", "template_text": TEMPLATE}, "request-not-valid"),
        ({"line": 1, "template": "/etc/passwd"}, "template-not-usable"),
        ({"line": 1, "template": "../chatml"}, "template-not-usable"),
        ({"line": 1, "template": "chatml", "content": "mine"}, "request-not-valid"),
        ({"template": "chatml"}, "request-not-valid"),
    ],
)
def test_what_cannot_be_explained(explained, asked: dict[str, Any], code: str) -> None:
    answer = explained(**{"line": None, **asked})
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_rows_of_json_and_parquet_are_counted_from_one(client: TestClient, put) -> None:
    folder = put(manifest='file = "c.json"\nformat = "json"')
    folder.joinpath("c.json").write_bytes(b"[" + chat("first") + b"," + chat("second") + b"]")
    answer = client.post(f"{FACTS}/explain", json={"line": 2, "template": "chatml"})
    assert "second" in answer.json()["text"]
    beyond = client.post(f"{FACTS}/explain", json={"line": 3, "template": "chatml"})
    assert beyond.json()["code"] == "row-unknown"
