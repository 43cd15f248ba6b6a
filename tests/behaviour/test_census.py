from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def chat(answer: str, **more: object) -> str:
    user = {"role": "user", "content": "Ask."}
    return json.dumps({"messages": [user, {"role": "assistant", "content": answer, **more}]})


@pytest.fixture
def rows(write) -> Path:
    """Four rows: one good, its duplicate, the same with another weight, and one that breaks the contract."""
    return write("rows.jsonl", "\n".join([chat("Yes."), chat("Yes."), chat("Yes.", weight=0), chat(" ")]) + "\n")


def test_examples_sum(turnmill, smollm2_directory) -> None:
    found = turnmill("census", EXAMPLES / "run.yaml", "--json").json
    assert found["rows"]["read"] == 72
    assert found["rows"]["rejected"] == found["per_source"]["faulty"]["rows"]["rejected"] == 15
    assert sum(found["codes"].values()) == 15
    assert found["unit"] == "tokens"
    assert found["trained_tokens"]["total"] < found["tokens"]["total"]


def test_lengths_and_tokens_agree(turnmill, smollm2_directory, write) -> None:
    path = write("one.jsonl", chat("Yes."))
    found = turnmill("census", path, "--model", "smollm2", "--json").json
    assert found["lengths"]["max"] == found["tokens"]["total"]
    assert found["per_source"]["one"]["samples"][0]["trained"] == ["Yes.<|im_end|>"]


def test_duplicates_are_counted_by_code(turnmill, rows) -> None:
    found = turnmill("census", rows, "--template", "chatml", "--json").json
    assert found["codes"] == {"blank-text": 1, "duplicate": 1, "duplicate-other-weights": 1}
    assert found["rows"]["accepted"] == 1
    assert turnmill("census", rows, "--template", "chatml", "--dedup.by", "[]", "--json").json["rows"]["rejected"] == 2


def test_a_template_alone_counts_characters(turnmill, rows) -> None:
    found = turnmill("census", rows, "--template", "chatml", "--json").json
    assert found["unit"] == "characters"
    assert found["trained_characters"] == {"total": 14, "answer": 4, "stop": 10}
    assert found["per_source"]["rows"]["samples"][0]["trained"] == ["Yes.<|im_end|>"]
    assert "tokens" not in found


def test_the_health_limit_does_not_stop_it(turnmill, write) -> None:
    path = write("bad.jsonl", "\n".join([chat("Yes."), *["{"] * 30]))
    answer = turnmill("census", path, "--template", "chatml", "--json")
    assert answer.code == 0
    assert answer.json["codes"] == {"invalid-json": 30}


def test_people_get_tables_and_a_page(turnmill, rows, tmp_path) -> None:
    page = tmp_path / "census.html"
    answer = turnmill("census", rows, "--template", "chatml", "--html", page)
    assert "blank-text" in answer.out
    assert "Characters of the training examples" in answer.out
    assert "blank-text" in page.read_text("utf-8")
    assert answer.next_step.startswith("turnmill prepare")


@pytest.mark.parametrize(
    ("arguments", "said", "step"),
    [
        ([], "no model given", "--model smollm2"),
        (["--template", "chatmI"], "Did you mean 'chatml'?", "--template"),
        (["--template", "chatml", "--html", "no/such/place.html"], "cannot write no/such/place.html", "--html FILE"),
    ],
)
def test_what_is_wrong_is_said(turnmill, rows, arguments, said, step) -> None:
    answer = turnmill("census", rows, *arguments)
    assert answer.code == 2
    assert said in answer.err
    assert step in answer.next_step


@pytest.fixture
def out(turnmill, rows, smollm2_directory, tmp_path) -> Path:
    folder = tmp_path / "out"
    answer = turnmill("prepare", rows, "--model", "smollm2", "--output", folder)
    assert answer.code == 0
    return folder


def test_a_prepared_folder_says_what_raw_data_say(turnmill, rows, out) -> None:
    prepared = turnmill("census", out, "--json").json
    raw = turnmill("census", rows, "--model", "smollm2", "--json").json
    for key in ("rows", "codes", "tokens", "trained_tokens", "turns", "lengths"):
        assert prepared[key] == raw[key], key
    assert prepared["per_source"]["rows"]["samples"] == raw["per_source"]["rows"]["samples"]


@pytest.mark.parametrize("name", ["report.json", "manifest.json", "train/packed/part-00000.parquet"])
def test_a_folder_that_changed_is_refused(turnmill, out, name) -> None:
    with (out / name).open("ab") as file:
        file.write(b"more")
    answer = turnmill("census", out)
    assert answer.code == 4
    assert name.split("/")[-1] in answer.err
