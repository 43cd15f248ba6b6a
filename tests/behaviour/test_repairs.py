"""Repairs through the command line: asked for by name, counted, stored, and named where a source needs them often."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chats import chat, numbered

TWICE = {"messages": [{"role": "user", "content": text} for text in ("one", "two")]}
TWICE["messages"].append({"role": "assistant", "content": "both"})
TRAILING = chat("q1", "a1", "q2")


@pytest.fixture
def mended(turnmill, rows) -> Callable[..., list[dict[str, Any]]]:
    """What `check --json` says of records under repairs."""

    def call(repairs: str, *records: Any) -> list[dict[str, Any]]:
        return turnmill("check", rows(*records), "--repairs", repairs, "--json").rows

    return call


def test_nothing_is_mended_unasked(turnmill, rows) -> None:
    (row,) = turnmill("check", rows(TRAILING), "--json").rows
    assert (row["code"], "repairs" in row) == ("last-turn-not-assistant", False)


def test_a_mended_row_says_by_what(mended) -> None:
    found = mended("merge-turns,drop-trailing-user", TRAILING, TWICE, chat("q", "a"))
    assert [row["repairs"] for row in found] == [["drop-trailing-user"], ["merge-turns"], []]
    assert found[0]["turns"] == [["user", "q1"], ["final", "a1"]]
    assert found[1]["turns"] == [["user", "one\n\ntwo"], ["final", "both"]]


def test_ids_are_those_of_the_mended_text(mended) -> None:
    found = mended("drop-trailing-user", TRAILING, chat("q1", "a1"))
    assert found[0]["id"] == found[1]["id"]


def test_the_order_is_the_given_one(mended) -> None:
    record = {"messages": [*chat("q", "", "r", "a")["messages"]]}
    assert mended("drop-empty-turns,merge-turns", record)[0]["turns"] == [["user", "q\n\nr"], ["final", "a"]]
    assert mended("merge-turns,drop-empty-turns", record)[0]["code"] == "user-after-user"


def test_a_repair_reaches_what_the_reader_refuses(mended) -> None:
    cut, whole = chat("x \ud83d y", "ok \U0001f600"), chat("hi", "yo")
    found = mended("replace-surrogates", cut, whole)
    assert found[0]["turns"] == [["user", "x \ufffd y"], ["final", "ok \U0001f600"]]
    assert [row["repairs"] for row in found] == [["replace-surrogates"], []]


def test_another_repair_leaves_the_readers_fault(mended) -> None:
    (row,) = mended("coerce-scalars", chat("x \ud83d y", "ok"))
    assert (row["code"], row["repairs"]) == ("lone-surrogate", [])


def test_an_unknown_repair_suggests_one(turnmill, rows) -> None:
    answer = turnmill("check", rows(chat("q", "a")), "--repairs", "merge-turn")
    assert answer.code == 2
    assert "Did you mean 'merge-turns'?" in answer.err
    assert answer.next_step == "turnmill list repairs"


def test_repairs_without_data_are_refused(turnmill, examples_config) -> None:
    answer = turnmill("check", examples_config, "--repairs", "merge-turns")
    assert (answer.code, "use --sources.NAME.repairs" in answer.err) == (2, True)


@pytest.fixture
def often(chats) -> Path:
    """23 rows of which three end with a question."""
    return chats("often.jsonl", *numbered(20), *([f"q{n}", "a", "and?"] for n in range(3)))


def test_prepare_counts_stores_and_warns(prepare, turnmill, often, tmp_path) -> None:
    out = prepare(often, "--repairs", "drop-trailing-user", "--workers", "1")
    assert out.report["repairs"] == out.report["per_source"]["often"]["repairs"] == {"drop-trailing-user": 3}
    stored = [row["repairs"] for row in out.conversations()]
    assert stored == [[]] * 20 + [["drop-trailing-user"]] * 3
    run = json.loads((out.folder / "run.json").read_text())
    alarm = "source 'often': drop-trailing-user mended 3 of 23 rows (13.0%): see how the source was made"
    assert run["warnings"] == [alarm]
    again = turnmill("prepare", often, "--model", "smollm2", "--repairs", "drop-trailing-user", "--workers", "1",
                     "--output", out.folder, "--json")  # fmt: skip
    assert f"warning: {alarm}" in again.err
    assert again.json["repairs"] == {"drop-trailing-user": 3}


@pytest.mark.parametrize("verb", ["check", "census"])
def test_other_verbs_warn_too(turnmill, often, verb: str) -> None:
    model = ["--model", "smollm2"] if verb == "census" else []
    answer = turnmill(verb, often, "--repairs", "drop-trailing-user", *model)
    assert "warning: source 'often': drop-trailing-user mended 3 of 23 rows" in answer.err


def test_a_tenth_of_the_rows_is_no_alarm(turnmill, chats) -> None:
    data = chats("rare.jsonl", *numbered(18), ["q1", "a", "and?"], ["q2", "a", "and?"])
    answer = turnmill("check", data, "--repairs", "drop-trailing-user")
    assert (answer.code, "warning" in answer.err) == (0, False)
    assert "2 repair/drop-trailing-user" in answer.out


def test_a_sources_repairs_are_its_own(turnmill, chats) -> None:
    first, second = chats("a.jsonl", TRAILING), chats("b.jsonl", TRAILING)
    found = turnmill("check", first, second, "--sources.b.repairs", "drop-trailing-user", "--json").rows
    assert [row["accepted"] for row in found] == [False, True]


PLUGIN = '''
import msgspec

def shout(conversation, mending):
    """Says the first question louder than it was asked."""
    first, *others = conversation.messages
    louder = msgspec.structs.replace(first, text=first.text.upper())
    return msgspec.structs.replace(conversation, messages=(louder, *others))
'''


def test_a_repair_of_a_file_is_known_by_its_bytes(prepare, chats, write, tmp_path) -> None:
    data = chats("a.jsonl", ["what now", "a"])

    def steps_of(plugin: Path) -> set[str]:
        row = prepare(data, "--sources.a.repairs", f"[{plugin}:shout]", "--workers", "1").conversations()[0]
        assert row["messages"][0]["content"][0]["text"].lower() == "what now"
        return {path.name for path in (tmp_path / ".out.steps").iterdir()}

    first = steps_of(write("one.py", PLUGIN))
    assert steps_of(write("two.py", PLUGIN)) == first
    assert len(steps_of(write("three.py", PLUGIN.replace("upper", "title"))) - first) > 1
