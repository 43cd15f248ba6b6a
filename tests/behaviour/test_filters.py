"""Filters through the command line: asked for by name, counted apart from rejected rows, part of the recipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chats import numbered

ROWS = [
    ["help me", "I'm sorry, but I can't help with that."],
    ["who are you?", "I am ChatGPT."],
    ["say it", "As an AI language model, I do not say things."],
    ["caf\u00e9?", "Le caf\u00c3\u00a9."],
    ["again", "I hope this helps. " * 20],
]
ALL = "[refusals, product-names, boilerplate, encoding-damage, repetition-loops]"
CODES = ["refusals", "product-names", "boilerplate", "encoding-damage", "repetition-loops"]


@pytest.fixture
def data(chats) -> Path:
    """Twenty good rows, and five that the filters let go."""
    return chats("rows.jsonl", *numbered(20), *ROWS)


def test_nothing_is_filtered_unasked(turnmill, data) -> None:
    assert all(row["accepted"] for row in turnmill("check", data, "--json").rows)


def test_rows_that_a_filter_lets_go_are_no_rejected_rows(turnmill, data) -> None:
    answer = turnmill("check", data, "--filter.use", ALL, "--json")
    left = [(row["code"], row["detail"]["class"], row["detail"]["stage"]) for row in answer.rows if row["code"]]
    assert left == [(code, "filtered", "filter") for code in CODES]
    assert answer.code == 0  # a fifth of the rows left, and the health limit is not asked


def test_prepare_counts_them_by_source(prepare, data) -> None:
    out = prepare(data, "--filter.use", ALL, "--workers", "1")
    assert out.report["per_source"]["rows"]["rows"]["filtered"] == 5
    assert out.report["codes"] == dict.fromkeys(sorted(CODES), 1)
    assert [row["code"] for row in out.table("quarantine")] == CODES


@pytest.mark.parametrize("verb", ["check", "census", "prepare"])
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--filter.use", "[refusal]"], "Did you mean 'refusals'?"),
        (["--filter.use", "[refusals]", "--filter.refusals.languages", "[xx]"], "unknown language of phrase lists"),
        (["--filter.use", "[refusals]", "--filter.refusals.files", "no.txt"], "cannot read the phrases of 'no.txt'"),
        (["--filter.language.keep", "[english]"], "unknown language 'english'"),
        (["--filter.repetition_loops.min_repeats", "1"], "expected at least 3"),
    ],
)
def test_wrong_options_end_a_run_before_it_starts(turnmill, data, tmp_path, verb, flags, message) -> None:
    output = ["--output", tmp_path / "out", "--dry-run"] if verb == "prepare" else []
    model = [] if verb == "check" else ["--model", "smollm2"]
    answer = turnmill(verb, data, *flags, *output, *model)
    assert (answer.code, message in answer.err) == (2, True), answer.err


def test_the_phrases_of_a_file_are_part_of_the_recipe(prepare, data, write, tmp_path) -> None:
    def steps(path: Path, text: str) -> set[str]:
        write(path.name, text)
        flags = ["--filter.use", "[refusals]", "--filter.refusals.files", str(path), "--workers", "1"]
        prepare(data, *flags)
        return {step.name for step in (tmp_path / ".out.steps").glob("filter-*")}

    first = steps(tmp_path / "one.txt", "it is\n")
    assert steps(tmp_path / "two.txt", "it is\n") == first
    assert len(steps(tmp_path / "two.txt", "it was\n") - first) == 1


def test_options_of_filters_that_do_not_run_change_no_step(prepare, data, tmp_path) -> None:
    prepare(data, "--workers", "1")
    prepare(data, "--workers", "1", "--filter.language.keep", "[en]")
    assert len(list((tmp_path / ".out.steps").glob("filter-*"))) == 1


def test_the_schema_has_the_options_of_every_filter(turnmill) -> None:
    schema = turnmill("config", "schema").json
    options = schema["$defs"]["Filter"]["properties"]
    assert set(options) >= {"use", *(code.replace("-", "_") for code in CODES), "language", "length_bounds"}
    assert schema["$defs"]["Language"]["properties"]["keep"]["description"].startswith("Two-letter codes")


def test_a_config_keeps_its_nested_options(turnmill, write, chats) -> None:
    config = write("run.yaml", "filter:\n  use: language\n  language: {keep: en}\n")
    shown = turnmill("config", "show", config, "--origins").out
    assert f"    keep: [en]  # {config}:3" in shown.splitlines()
    french = "Le train part à midi, et il sera en retard à cause de la neige qui est tombée sur les voies cette nuit."
    answer = turnmill("check", config, chats("a.jsonl", ["q", f"{french} Vous pouvez prendre le bus."]), "--json")
    assert json.loads(answer.out)["code"] == "language"


PLUGIN = '''
from turnmill.errors import Rejected

def loud(conversation, options):
    """Lets a conversation go that has an exclamation mark in it."""
    return Rejected("loud", "it is loud") if any("!" in m.text for m in conversation.messages) else None
'''


def test_a_filter_of_a_file_has_its_own_code(prepare, chats, write) -> None:
    plugin = write("mine.py", PLUGIN)
    out = prepare(chats("a.jsonl", ["q", "a"], ["q", "hey!"]), "--filter.use", f"[{plugin}:loud]", "--workers", "1")
    assert out.report["codes"] == {"loud": 1}
