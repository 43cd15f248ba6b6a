"""Rows that changed shape, conversions that are wrong, limits: each is named, and finished work stays."""

from __future__ import annotations

import pytest

from chats import chat, numbered
from pinned_sources import BuiltSource
from turnmill.errors import HealthError, UsageError
from turnmill.sources import Pin, PinnedSource, Withheld
from turnmill.steps.graph import run
from turnmill.verbs.source_steps import nodes_of

ODD = """
def chat_of(record):
    if record.get("odd") == "shape":
        return record["there"]["is"]["none"]
    if record.get("odd") == "kind":
        return record["messages"].get("content")
    if record.get("odd") == "place":
        return record["messages"][9]
    if record.get("odd") == "on purpose":
        raise Filtered("too odd")
    if record.get("odd") == "code":
        raise Rejected("blank-text", "as the source says")
    return record
"""


@pytest.mark.parametrize(
    ("odd", "left"),
    [
        ("shape", ("rejected", "conversion-failed", 1)),
        ("kind", ("rejected", "conversion-failed", 1)),
        ("place", ("rejected", "conversion-failed", 1)),
        ("code", ("rejected", "blank-text", 1)),
        ("on purpose", ("filtered", "source-filtered", 1)),
    ],
)
def test_a_record_of_another_shape_leaves_and_the_others_stay(build, odd, left) -> None:
    built = build(chat("a", "b", odd=odd), chat("c", "d"), more="convert=chat_of", code=ODD)
    assert (built.left, len(built.table("normalized"))) == ([left], 1)


def test_a_conversion_that_gives_nothing_stops_with_its_name(build) -> None:
    with pytest.raises(UsageError, match=r"the conversion of source .* gave None; expected a record") as caught:
        build(chat("a", "b"), more="convert=chat_of", code="def chat_of(record): pass")
    assert caught.value.next_step.startswith("turnmill sources show")


def test_a_bug_of_a_conversion_keeps_its_traceback(build) -> None:
    with pytest.raises(ZeroDivisionError):
        build(chat("a", "b"), more="convert=chat_of", code="def chat_of(record): return 1 / 0")


def test_rows_that_leave_on_purpose_are_outside_the_health_limit(build) -> None:
    rows = [chat(*turns, odd="on purpose" if n % 2 else None) for n, turns in enumerate(numbered(40))]
    assert len(build(*rows, more="convert=chat_of", code=ODD).table("conversations")) == 20


@pytest.mark.parametrize(("good", "bad", "passes"), [(20, 1, True), (38, 2, True), (37, 3, False), (1, 1, True)])
def test_the_health_limit_holds_before_anything_is_published(own, tmp_path, good, bad, passes) -> None:
    rows = [chat(*turns) for turns in numbered(good)] + [chat("a", " ") for _ in range(bad)]
    key = own(*rows)
    if passes:
        assert len(BuiltSource(key, tmp_path / "cache").table("conversations")) == good
        return
    nodes = nodes_of(key)
    outcomes = {outcome.node.name: outcome for outcome in run([nodes.normalized], tmp_path / "cache")}
    assert isinstance(outcomes["mine/check"].error, HealthError)
    assert (outcomes["mine/download"].state, outcomes["mine/normalized"].because) == ("made", "mine/check")
    assert not nodes.checked.folder(tmp_path / "cache").exists()


def test_a_source_of_which_nothing_is_left_is_refused(own, tmp_path) -> None:
    key = own(chat("a", "b"), more="convert=chat_of", code="def chat_of(record): raise Filtered('all of them')")
    with pytest.raises(HealthError, match="none of its 1 rows was accepted"):
        BuiltSource(key, tmp_path / "cache")


PIN = Pin("hf://datasets/org/name@" + "a" * 40)
WITHHELD = Withheld(PIN, lambda record: [], lambda record: None)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"tokens": 0}, "its weight is 0 tokens"),
        ({"tokens": float("nan")}, "its weight is nan tokens"),
        ({"pin": Pin("hf://datasets/org/name@main")}, "is not pinned; expected a commit of 40 digits"),
        ({"pin": Pin("hf://datasets/org/name")}, "is not pinned"),
        ({"pin": Pin("hf://datasets/org/name@0123abc")}, "is not pinned"),
        ({"pin": Pin("https://host/a.jsonl")}, "is not pinned; expected `sha256`"),
        ({"pin": Pin("s3://bucket/a.jsonl", (), {"a.jsonl": "abc"})}, "is not pinned"),
        ({"withheld": WITHHELD}, "`withheld` and `convert_with_prompts` go together"),
        ({"convert_with_prompts": lambda record, prompts: record}, "go together"),
    ],
)
def test_a_source_that_is_not_pinned_or_weighed_is_refused(fields, what) -> None:
    with pytest.raises(UsageError, match=what):
        PinnedSource(**{"pin": PIN, "tokens": 1.0, "licence": "mit", **fields})
