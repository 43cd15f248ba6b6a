"""What a source says for itself: its own options of each verb, over those of the sections."""

from __future__ import annotations

import json

import pytest

from chats import chat, numbered
from published import Published, trained_texts
from turnmill.config import json_schema, load
from turnmill.errors import UsageError

THINKS = chat("q", "<reason>r</reason>a")


@pytest.fixture
def made(write, chats, turnmill, tmp_path):
    """Prepares two sources of the same kind of rows, `own` with options of its own, and gives OUT."""

    def call(rows: list, own: dict, *flags: str, **sections) -> Published:
        sources = [
            {"name": "own", "data": str(chats("own.jsonl", *rows)), **own},
            {"name": "other", "data": str(chats("other.jsonl", *(_again(row) for row in rows)))},
        ]
        tree = {"model": {"name_or_path": "smollm2"}, "sources": sources, "workers": 1, **sections}
        answer = turnmill("prepare", write("run.yaml", json.dumps(tree)), "--output", tmp_path / "out", *flags)
        assert answer.code == 0, answer.err
        return Published(tmp_path / "out")

    return call


def _again(row: list[str] | dict) -> list[str] | dict:
    """The same answer to another question."""
    return [f"Again: {row[0]}", *row[1:]] if isinstance(row, list) else row


def codes(out: Published, source: str) -> dict[str, int]:
    return {code: n for code, n in out.report["per_source"][source]["codes"].items() if n}


ROWS = [*numbered(3), ["Say much.", "word " * 60], ["sorry?", "I'm sorry, but I can't help with that."]]


@pytest.mark.parametrize(
    ("own", "code"),
    [
        ({"check": {"max_turn_characters": 100}}, "turn-too-long"),
        ({"filter": {"use": "length-bounds", "length_bounds": {"max_characters": 100}}}, "length-bounds"),
        ({"filter": {"use": ["refusals"]}}, "refusals"),
        ({"read": {"max_record_bytes": 250}}, "record-too-large"),
    ],
)
def test_rows_leave_a_source_by_its_own_options(made, own, code):
    out = made(ROWS, own)
    assert codes(out, "own") == {code: 1}
    assert codes(out, "other") == {}


def test_fields_that_a_source_does_not_name_are_those_of_the_section(made):
    own = {"filter": {"length_bounds": {"max_characters": 1000}}}
    section = {"use": ["length-bounds"], "length_bounds": {"min_characters": 60, "max_characters": 250}}
    out = made([*ROWS, ["a" * 50, "b" * 50]], own, filter=section)
    assert codes(out, "own") == {"length-bounds": 4}
    assert codes(out, "other") == {"length-bounds": 5}


def test_think_tags_limit_and_loss_are_a_source_s_own(made, tokenizer):
    rows = [THINKS, *numbered(2)]
    own = {"read": {"think_tags": ["<reason>"]}, "loss": {"reasoning": False}, "limit": 1}
    out = made(rows, own, "--dedup.by", "[]")
    trained = {(row["source"], *trained_texts(row, tokenizer)) for row in out.examples() if row["source_line"] == 1}
    assert ("other", "<reason>r</reason>a<|im_end|>") in trained
    assert out.report["per_source"]["own"]["rows"]["read"] == 1
    assert not any("<reason>" in text for source, *texts in trained if source == "own" for text in texts)


def test_a_source_is_rendered_and_cut_by_its_own_options(made):
    rows = [["How does a turn end?", "<|im_end|> ends it"], ["a " * 30, "b", "c", "d " * 60]]
    out = made(rows, {"render": {"control_tokens": "reject"}, "fit": {"overflow": "drop"}}, "--max-tokens", "100")
    assert codes(out, "own") == {"control-token-in-text": 1, "too-long": 1}
    assert codes(out, "other") == {}


@pytest.mark.parametrize(
    ("own", "sections", "held_out"),
    [
        ({"split": {"rows": 6}}, {}, {"own": 6}),
        ({"split": {"rows": 0}}, {"split": {"rows": 6}}, {"other": 6}),
        ({"split": {"fraction": 0.0}}, {"split": {"rows": 0}}, {}),
    ],
)
def test_a_source_holds_out_its_own_share(made, own, sections, held_out):
    out = made(numbered(40), own, **sections)
    found: dict[str, int] = {}
    for row in out.conversations("eval"):
        found[row["source"]] = found.get(row["source"], 0) + 1
    assert found == held_out


def test_the_census_counts_by_the_same_options(turnmill, write, chats):
    sources = [{"name": "s", "data": str(chats("s.jsonl", *ROWS)), "check": {"max_turn_characters": 100}}]
    sources[0] |= {"filter": {"use": ["refusals"]}, "render": {"control_tokens": "reject"}, "limit": 5}
    tree = {"model": {"name_or_path": "smollm2"}, "sources": sources}
    found = json.loads(turnmill("census", write("run.yaml", json.dumps(tree)), "--json").out)
    assert found["codes"] == {"turn-too-long": 1, "refusals": 1}


def test_what_a_source_changes_is_made_anew_and_nothing_else(made, tmp_path):
    def steps(own: dict) -> set[str]:
        return {f"{step['name']}-{step['fingerprint']}" for step in made(numbered(3), own).manifest["steps"]}

    first, second = steps({}), steps({"check": {"max_turn_characters": 1000}})
    assert sorted(name.partition("-")[0] for name in second - first) == [
        "check", "dedup", "filter", "pack", "split", "tokenize", "tokenize",
    ]  # fmt: skip
    assert {name.partition("-")[0] for name in first & second} == {"check", "filter"}


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"dedup": {"by": []}}, "dedup cannot be set for one source: it compares the rows of all sources"),
        ({"decontaminate": {"ngram": 8}}, "decontaminate cannot be set for one source: the rows of all sources are"),
        ({"split": {"near": True}}, "split.near cannot be set for one source: near-duplicates are looked for in all"),
        ({"pack": {"on": False}}, "pack cannot be set for one source"),
        ({"model": {"name_or_path": "x"}}, "model cannot be set for one source"),
        ({"seed": 1}, "seed cannot be set for one source"),
        ({"fit": {"max_tokens": 10}}, "fit.max_tokens cannot be set for one source"),
        ({"read": {"keep_columns": ["a"]}}, "read.keep_columns cannot be set for one source"),
        ({"split": {"per_source": True}}, "split.per_source cannot be set for one source"),
        ({"check": {"max_turn_charactres": 1}}, "Did you mean 'max_turn_characters'"),
        ({"filter": {"length_bounds": {"min_turn": 1}}}, "Did you mean 'min_turns'"),
        ({"check": {"max_turn_characters": 0}}, "expected at least 1"),
        ({"split": {"fraction": "much"}}, "sources.0.split.fraction: got 'much'"),
        ({"limit": 0}, "sources.0.limit: got 0, expected at least 1"),
        ({"render": []}, "sources.0.render"),
    ],
)
def test_what_no_source_can_say_is_refused_by_name(write, own, said):
    path = write("run.yaml", json.dumps({"sources": [{"name": "s", "data": "x.jsonl", **own}]}))
    with pytest.raises(UsageError) as caught:
        load(path)
    assert said in caught.value.message


def test_flags_name_a_source_s_own_options(write):
    path = write("run.yaml", "sources:\n  - {name: s, data: x.jsonl, check: {max_turn_characters: 5}}\n")
    flags = [("sources.s.check.partial_batch", "trim")]
    config, origins = load(path, flags)
    own = config.of(config.sources[0])
    assert (own.check.max_turn_characters, own.check.partial_batch) == (5, "trim")
    assert config.check.max_turn_characters is None
    assert origins["sources.s.check"] == "flag"


def test_show_says_where_a_source_s_own_options_come_from(turnmill, write):
    path = write("run.yaml", "sources:\n  - name: s\n    data: x.jsonl\n    check: {max_turn_characters: 5}\n")
    answer = turnmill("config", "show", path, "--origins")
    assert f"check: {{max_turn_characters: 5}}  # {path}:4" in answer.out


def test_the_schema_spells_out_what_a_source_may_say():
    definitions = json_schema()["$defs"]
    assert definitions["Source"]["properties"]["fit"]["$ref"] == "#/$defs/SourceFit"
    assert list(definitions["SourceFit"]["properties"]) == ["overflow"]
    assert "default" not in definitions["SourceCheck"]["properties"]["partial_batch"]
    assert definitions["SourceFilter"]["properties"]["length_bounds"]["$ref"] == "#/$defs/LengthBounds"
