"""Each step's version is locked to its output: who changes what a step makes of the same recipe raises its version."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from chats import chat
from published import Published
from turnmill.cli.app import run
from turnmill.verbs import check, decontaminate, dedup, filter, near, pack, split, tokenize

CALL = {"from": "function_call", "value": '{"name": "stock", "arguments": {"part": "M6"}}'}
TOOLS = '[{"name": "stock", "parameters": {"type": "object", "properties": {"part": {"type": "string"}}}}]'
ROWS = [
    chat("What is a lathe?", "<think>\nEasy.\n</think>\n\nIt turns the work."),
    chat("And a mill?", "It turns the tool.", "Why?", "So that\n  the work\u2028stays.", system="Be brief. "),
    chat("What is a lathe?", "<think>\nEasy.\n</think>\n\nIt turns the work."),
    chat("Who are you?", "I write <|im_end|> as text."),
    chat("Nothing", " "),
    chat("A long one", "first", "on", "word " * 60),
    {"conversations": [{"from": "human", "value": "M6?"}, CALL, {"from": "observation", "value": "4"},
                       {"from": "gpt", "value": "Four."}], "tools": TOOLS},
]  # fmt: skip
LEFT = ("class", "code", "message", "stage", "source_line", "row", "at")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("golden")
    for name, rows in (("openai", ROWS[:-1]), ("sharegpt", ROWS[-1:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = [str(folder / f"{name}.jsonl") for name in ("openai", "sharegpt")]
    flags = ["--model", "smollm2", "--workers", "1", "--max-tokens", "96", "--split.fraction", "0.3"]
    assert run(["prepare", *data, *flags, "--filter.use", "[refusals]", "--output", str(folder / "out")]) == 0
    return Published(folder / "out")


TALES = [
    "A turner cut a ring of brass for a friend who lives far away and sent it by the morning train.",
    "A turner cut a ring of brass for a friend who lives far away and sent it by the evening train.",
    "Two millers bought one mill between them and nobody in the valley knows what they paid for all of it.",
    "what they paid for all of it",
]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("golden-near")
    (folder / "rows.jsonl").write_text("".join(json.dumps(chat("Tell me.", text)) + "\n" for text in TALES))
    (folder / "bench.txt").write_text(f"Once, {TALES[2]}\nWhat they paid, for all of it?\n")
    flags = ["--model", "smollm2", "--workers", "1", "--against", str(folder / "bench.txt"), "--split.near", "true"]
    near = ["--dedup.by", "[near]", "--dedup.near.threshold", "0.6", "--output", str(folder / "out")]
    assert run(["prepare", str(folder / "rows.jsonl"), *flags, *near]) == 0
    return Published(folder / "out")


def test_versions_stand_for_one_output_of_what_compares_rows(compared: Published) -> None:
    found = [*left(compared, "duplicates"), *left(compared, "quarantine")]
    similar = [row["similarity"] for row in compared.table("duplicates")]
    versions = {step["name"]: step["version"] for step in compared.manifest["steps"]}
    assert {**versions, **COMPARING_STEPS}.items() >= COMPARING.items()
    assert digest([found, similar]) == "58e2a7cf806d9c9b"


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("golden-chosen")
    rows = [chat(f"Number {n}?", " ".join(f"w{n * k % 37}" for k in range(1 + n % 17))) for n in range(24)]
    for name, part in (("a", rows[:8]), ("b", rows[8:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    scoring = ["--score.scorer", "ngram", "--select.strategy", "balanced", "--select.rows", "15"]
    bounds = ["--select.max_perplexity", "0", "--select.min_tokens", "20", "--sources.a.weight", "1"]
    flags = ["--model", "smollm2", "--workers", "1", "--mix.epochs", "2", "--output", str(folder / "out")]
    data = [str(folder / f"{name}.jsonl") for name in ("a", "b")]
    assert run(["prepare", *data, *flags, *scoring, *bounds]) == 0
    return Published(folder / "out")


def test_versions_stand_for_one_choice(chosen: Published) -> None:
    versions = {step["name"]: step["version"] for step in chosen.manifest["steps"]}
    assert versions.items() >= CHOOSING.items()
    scores = [[row["row_id"], row["kind_tokens"], round(row["sum_nll"], 3)] for row in chosen.table("scores")]
    rows = [[row["source_line"], row["source"]] for side in ("train", "control") for row in chosen.examples(side)]
    assert digest([scores, rows, left(chosen, "quarantine"), chosen.plan("train")]) == "a0bcc77364c130e9"


def digest(rows: Any) -> str:
    return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()[:16]


def left(published: Published, place: str) -> list[dict]:
    return [{name: row[name] for name in LEFT} for row in published.table(place)]


OUTPUTS = {
    "check": lambda found: [*found.conversations("train"), *found.conversations("eval"), *left(found, "quarantine")],
    "filter": lambda found: found.report["rows"],
    "dedup": lambda found: left(found, "duplicates"),
    "split": lambda found: [row["id"] for row in found.conversations("eval")],
    "tokenize": lambda found: [*found.examples("train"), *found.examples("eval")],
    "pack": lambda found: [found.plan("train"), found.packed("train")],
}
VERSIONS = {
    "check": (check.VERSION, 3, "a4358e0d6a60b289"),
    "filter": (filter.VERSION, 3, "4d89107d3396e4df"),
    "dedup": (dedup.VERSION, 4, "bc003c28945421b4"),
    "split": (split.VERSION, 2, "50f326431d2f00c3"),
    "tokenize": (tokenize.VERSION, 7, "02174337ccee58ba"),
    "pack": (pack.VERSION, 2, "c8d9b43949660864"),
}
"""Step → its version, and the version and digest that belong together."""

COMPARING = {"dedup": 4, "decontaminate": 1, "signatures": 1, "pairs": 1, "evaluation": 1}
"""The versions that the locked near-duplicates and contaminated rows belong to."""
CHOOSING = {"score": 1, "select": 2, "select-rows": 1, "pack": 2}
"""The versions that the locked scores, choice and mixed plans belong to."""
COMPARING_STEPS = {
    "signatures": near.SIGNATURES_VERSION, "pairs": near.PAIRS_VERSION, "evaluation": decontaminate.EVALUATION_VERSION,
}  # fmt: skip


@pytest.mark.parametrize("step", VERSIONS)
def test_a_version_stands_for_one_output(published: Published, step: str) -> None:
    version, locked, expected = VERSIONS[step]
    assert (version, digest(OUTPUTS[step](published))) == (locked, expected)
