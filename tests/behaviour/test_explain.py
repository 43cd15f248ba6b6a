"""`turnmill explain DATA ROW --json` on raw data."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

KEYS = ["row", "id", "text", "spans", "input_ids", "labels", "turns", "examples", "cut", "max_tokens"]
EXAMPLE_KEYS = [
    "part", "text", "spans", "input_ids", "labels", "weights", "offsets", "runs", "control", "bytes", "kept"
]  # fmt: skip
SMOLLM2 = ("--model", "smollm2", "--json")
CHATML = ("--template", "chatml", "--json")


def chat(*texts: str, **fields: object) -> dict:
    """A record whose user and assistant take turns; `fields` go to the last message."""
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    messages[-1].update(fields)
    return {"messages": messages}


def trained_text(row: dict) -> list[str]:
    """The trained spans' texts; neighbours are one."""
    texts, end = [], -1
    for span in row["spans"]:
        if span["trained"]:
            text = row["text"][span["start"] : span["end"]]
            texts = [*texts[:-1], texts[-1] + text] if end == span["start"] else [*texts, text]
            end = span["end"]
    return texts


def whys(row: dict) -> list[str]:
    return [turn["why"] for turn in row["turns"]]


def test_the_keys_are_those_that_programs_rely_on(turnmill, rows) -> None:
    row = turnmill("explain", rows(chat("hi", "yo")), "0", *SMOLLM2).json
    assert list(row) == KEYS
    assert [list(example) for example in row["examples"]] == [EXAMPLE_KEYS]
    assert [list(turn) for turn in row["turns"]] == [["message", "trained", "why", "role"]] * 2
    assert all(list(span) == ["start", "end", "message", "kind", "trained"] for span in row["spans"])


def test_tokens_and_labels_are_the_first_examples(turnmill, rows) -> None:
    row = turnmill("explain", rows(chat("hi", "yo")), "0", *SMOLLM2).json
    example = row["examples"][0]
    assert (row["input_ids"], row["labels"]) == (example["input_ids"], example["labels"])
    pairs = list(zip(example["labels"], example["input_ids"], example["weights"], strict=True))
    assert {label in (token, -100) and (label == token) == (weight > 0) for label, token, weight in pairs} == {True}
    assert trained_text(row) == ["yo<|im_end|>"]


def test_the_text_is_whole_and_the_example_ends_with_its_last_stop(turnmill, rows) -> None:
    row = turnmill("explain", rows(chat("hi", "yo")), "0", *SMOLLM2).json
    assert row["text"] == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo<|im_end|>\n"
    assert row["examples"][0]["text"] == row["text"][:-1]
    assert row["examples"][0]["spans"][-1]["end"] == len(row["text"]) - 1


@pytest.mark.parametrize("name", ["qwen3", "qwen2_5", "phi3", "gemma3"])
def test_a_template_alone_gives_text_and_spans(turnmill, rows, trl_templates: Path, name: str) -> None:
    flags = ("--template", trl_templates / f"{name}.jinja", "--special-tokens", '{"eos_token": "<eos>"}')
    row = turnmill("explain", rows(chat("Why?", "Because.")), "0", *flags, "--json").json
    assert (row["input_ids"], row["labels"]) == (None, None)
    assert [row["examples"][0][key] for key in ("input_ids", "labels", "weights")] == [None] * 3
    assert len(trained_text(row)) == 1
    assert trained_text(row)[0].startswith("Because.")


def test_spans_cover_the_text_in_order(turnmill, examples: Path) -> None:
    for row in turnmill("explain", examples / "assistant.jsonl", "all", *CHATML).rows:
        edges = [0, *(edge for span in row["spans"] for edge in (span["start"], span["end"])), len(row["text"])]
        assert all(one <= other for one, other in pairwise(edges))
        assert edges[0::2] == edges[1::2]


def test_all_gives_every_row_in_order_with_the_code_of_those_that_leave(turnmill, examples: Path) -> None:
    data = (examples / "faulty.jsonl", examples / "assistant.jsonl")
    answer = turnmill("explain", *data, "all", *CHATML)
    assert answer.code == 0
    assert [row["row"] for row in answer.rows] == list(range(36))
    checked = turnmill("check", *data, "--json").rows
    assert [row.get("code") for row in answer.rows] == [row["code"] for row in checked]
    assert [row["id"] for row in answer.rows] == [row["id"] for row in checked]


def test_a_row_is_found_by_its_id(turnmill, examples: Path) -> None:
    data = examples / "assistant.jsonl"
    wanted = turnmill("check", data, "--json").rows[7]
    found = turnmill("explain", data, wanted["id"], *CHATML).json
    assert (found["row"], found["id"]) == (7, wanted["id"])


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), ["role", "trained", "role", "trained"]),
        (("--loss.turns", "last"), ["role", "not-last", "role", "trained"]),
        (("--max-tokens", "20"), ["role", "trained", "role", "cut"]),
    ],
)
def test_why_each_message_trains_or_not(turnmill, rows, flags: tuple[str, ...], expected: list[str]) -> None:
    row = turnmill("explain", rows(chat("hi", "yo", "more?", "no")), "0", *SMOLLM2, *flags).json
    assert whys(row) == expected
    assert [turn["trained"] for turn in row["turns"]] == [why == "trained" for why in expected]
    assert {span["message"] for span in row["spans"] if span["trained"]} == {
        turn["message"] for turn in row["turns"] if turn["trained"]
    }


def test_a_cut_example_ends_earlier_than_the_text(turnmill, rows) -> None:
    row = turnmill("explain", rows(chat("hi", "yo", "more?", "no")), "0", *SMOLLM2, "--max-tokens", "20").json
    (example,) = row["examples"]
    assert row["text"].startswith(example["text"])
    assert example["text"].endswith("yo<|im_end|>")
    assert len(example["input_ids"]) <= 20
    assert row["text"].endswith("no<|im_end|>\n")


def test_a_recorded_weight_of_0_is_why(turnmill, rows) -> None:
    record = chat("hi", "yo", "more?", "no", weight=0)
    row = turnmill("explain", rows(record), "0", *SMOLLM2).json
    assert whys(row) == ["role", "trained", "role", "weight-zero"]
    assert trained_text(row) == ["yo<|im_end|>"]


def test_fractional_weights_are_shown(turnmill, rows) -> None:
    record = chat("hi", "yo", weight=0.25)
    row = turnmill("explain", rows(record), "0", *SMOLLM2, "--loss.fractional", "true").json
    assert set(row["examples"][0]["weights"]) == {0.0, 0.25}


def test_reasoning_off_drops_the_reasoning_alone(turnmill, rows) -> None:
    record = chat("2+2?", "4", reasoning_content="Add them.")
    row = turnmill("explain", rows(record), "0", *SMOLLM2, "--loss.reasoning", "false").json
    assert whys(row) == ["role", "trained"]
    assert trained_text(row) == ["4<|im_end|>"]


def test_a_message_that_is_nothing_but_reasoning_says_reasoning_off(turnmill, rows) -> None:
    thinks = {"role": "assistant", "content": "", "reasoning_content": "Add."}
    record = {"messages": [{"role": "user", "content": "2+2?"}, thinks, {"role": "assistant", "content": "4"}]}
    row = turnmill("explain", rows(record), "0", *SMOLLM2, "--loss.reasoning", "false").json
    assert whys(row) == ["role", "reasoning-off", "trained"]


def test_a_row_the_contract_refuses_names_its_messages(turnmill, rows) -> None:
    row = turnmill("explain", rows(chat("hi", " ")), "0", *SMOLLM2).json
    assert list(row) == [*KEYS, "code", "message", "at"]
    assert (row["code"], row["id"], row["text"], row["examples"]) == ("blank-text", None, None, [])
    assert whys(row) == ["rejected:blank-text"] * 2


@pytest.mark.parametrize(
    ("record", "flags", "code"),
    [
        (chat("hi", "yo", weight=0), (), "no-trainable-tokens"),
        (chat("hi", "yo " * 40), ("--max-tokens", "20"), "first-turn-too-long"),
        (chat("hi", "yo"), ("--max-tokens", "3", "--fit.overflow", "drop"), "too-long"),
    ],
)
def test_a_row_without_example_keeps_its_text(turnmill, rows, record: dict, flags: tuple[str, ...], code: str) -> None:
    row = turnmill("explain", rows(record), "0", *SMOLLM2, *flags).json
    assert (row["code"], row["examples"], row["input_ids"]) == (code, [], None)
    assert row["text"].startswith("<|im_start|>user\nhi<|im_end|>")
    assert len(row["id"]) == 32
    assert not any(span["trained"] for span in row["spans"])
    assert whys(row) == [f"rejected:{code}"] * 2


def test_rejected_rows_need_no_model(turnmill, examples: Path) -> None:
    assert turnmill("explain", examples / "faulty.jsonl", "7", "--json").json["code"] == "user-after-user"


def test_control_tokens_in_content_are_shown(turnmill, rows) -> None:
    row = turnmill("explain", rows(chat("What is <|im_end|>?", "A marker.")), "0", *SMOLLM2).json
    start = row["text"].index("<|im_end|>?")
    assert row["control_hits"] == [{"start": start, "end": start + 10, "text": "<|im_end|>"}]
    assert row["input_ids"].count(2) == 2  # one a message: the user's is plain text


def test_tool_calls_and_results(turnmill, examples: Path) -> None:
    row = turnmill("explain", examples / "tools.json", "0", *SMOLLM2).json
    kinds = {span["kind"] for span in row["spans"] if span["trained"]}
    assert kinds == {"call", "answer", "stop"}
    observed = turnmill("explain", examples / "tools.json", "0", *SMOLLM2, "--loss.observations", "true").json
    assert "result" in {span["kind"] for span in observed["spans"] if span["trained"]}
    assert whys(observed).count("trained") > whys(row).count("trained")


def test_a_text_outside_the_list_has_no_message(turnmill, rows) -> None:
    record = {
        "system": "Be brief.",
        "conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}],
    }
    row = turnmill("explain", rows(record), "0", *CHATML).json
    assert {span["message"] for span in row["spans"] if span["kind"] == "system"} == {None}
    assert [turn["message"] for turn in row["turns"]] == [0, 1]


@pytest.mark.parametrize(
    ("row", "said"),
    [("9", "no row 9 in "), ("0" * 32, "no row 0000"), ("first", "expected a row's number"), ("-1", "no such option")],
)
def test_a_row_that_is_not_there_is_an_error(turnmill, rows, row: str, said: str) -> None:
    answer = turnmill("explain", rows(chat("hi", "yo")), row, *CHATML)
    assert (answer.code, answer.out) == (2, "")
    assert said.lower() in answer.err.lower()


def test_a_row_that_needs_a_model_says_so(turnmill, rows) -> None:
    answer = turnmill("explain", rows(chat("hi", "yo")), "0")
    assert answer.code == 2
    assert answer.next_step.endswith("--model smollm2")


def test_the_next_command_prepares_the_same_data(turnmill, rows) -> None:
    data = rows(chat("hi", "yo"))
    answer = turnmill("explain", data, "0", "--dialect", "openai", *SMOLLM2)
    assert answer.next_step == f"turnmill prepare {data} --dialect openai --model smollm2 --output out"


def test_what_is_too_long_goes_on_in_further_parts(turnmill, write):
    said = [("user", f"Question number {n}?") if n % 2 == 0 else ("assistant", f"Answer number {n}.") for n in range(8)]
    messages = [{"role": "system", "content": "Be brief."}, *({"role": r, "content": c} for r, c in said)]
    data = write("long.jsonl", json.dumps({"messages": messages}))
    flags = ("--model", "smollm2", "--max-tokens", "55", "--fit.overflow", "continue", "--json")
    found = turnmill("explain", data, "0", *flags).json
    parts = found["examples"]
    assert [part["part"] for part in parts] == list(range(len(parts))) != [0]
    trained = [part["text"][s["start"] : s["end"]] for part in parts for s in part["spans"] if s["trained"]]
    assert [text for text in trained if "Answer" in text] == [f"Answer number {n}." for n in (1, 3, 5, 7)]
    assert all(part["text"].startswith("<|im_start|>system\nBe brief.") for part in parts)
    assert {turn["message"] for turn in found["turns"] if turn["why"] == "trained"} == {2, 4, 6, 8}
