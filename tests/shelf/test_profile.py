from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from turnmill.shelf.manifest import Manifest
from turnmill.shelf.profile import MAX_SOURCES, Histogram, profile_of
from turnmill.shelf.replays import replay_rows

FACTS = Manifest("facts", "rows.jsonl")
CHATS = Manifest("facts", "rows.jsonl", dialect="openai")


def rows(*chats: dict[str, Any] | list[str]) -> str:
    roles = ("user", "assistant") * 9
    records = [
        chat if isinstance(chat, dict) else {
            "messages": [{"role": role, "content": text} for role, text in zip(roles, chat, strict=False)]
        }
        for chat in chats
    ]  # fmt: skip
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    ("values", "counts"), [([], [0, 0, 0]), ([0, 1], [2, 0, 0]), ([2, 4, 5, 10**9], [0, 2, 2]), ([-1], [1, 0, 0])]
)
def test_a_histogram_counts_from_each_edge_to_the_next(values: list[int], counts: list[int]) -> None:
    histogram = Histogram((1, 2, 5))
    for value in values:
        histogram.add(value)
    assert histogram.as_json() == {"edges": [1, 2, 5], "counts": counts}


def test_a_profile_counts_what_rows_are_like(write) -> None:
    chats = rows(["a", "b"], ["a"], ["abc", "b", "c", "d"])
    found = profile_of(write("rows.jsonl", chats + "{").parent, CHATS).as_json()
    assert (found["rows"], found["accepted"], found["complete"]) == (4, 2, True)
    assert found["codes"] == {"invalid-json": 1, "no-assistant-turn": 1}
    assert found["roles"] == {"assistant": 2, "user": 3}
    assert found["kinds"] == {"reasoning": 0, "calls": 0, "tools": 0}
    assert found["sources"] == {"facts": 4}
    turns = dict(zip(found["turns"]["edges"], found["turns"]["counts"], strict=True))
    assert (turns[1], turns[2], turns[4], sum(turns.values())) == (1, 1, 1, 3)
    assert sum(found["characters"]["counts"]) == 3


def test_of_very_many_sources_the_most_frequent_are_named(write) -> None:
    chats = [{"instruction": "a", "output": "b", "source": f"source {number}"} for number in range(MAX_SOURCES + 3)]
    found = profile_of(write("rows.jsonl", rows(*chats)).parent, FACTS).as_json()
    assert (len(found["sources"]), found["other_sources"]) == (MAX_SOURCES, 3)


@pytest.mark.parametrize("bounds", [{"max_rows": 2}, {"max_seconds": -1.0}])
@pytest.mark.parametrize("pass_over", [profile_of, replay_rows])
def test_a_pass_over_too_many_rows_ends_early(write, pass_over: Any, bounds: dict[str, Any]) -> None:
    folder = write("rows.jsonl", rows(*[{"instruction": "a", "output": "b"}] * 5)).parent
    found = pass_over(folder, FACTS, **bounds)
    assert found.rows <= 2
    assert not found.complete


def test_a_replay_says_what_becomes_of_rejected_rows(write) -> None:
    folder = write("rows.jsonl", rows(["a", "b", "c"], ["a"], ["a", "b"], ["a", "b", "c"]) + "{\n").parent
    found = replay_rows(folder, CHATS, ["drop-trailing-user"]).as_json()
    assert (found["rows"], found["rejected"], found["passes"]) == (5, 4, 2)
    moves = {(move["code"], move["becomes"]): move["lines"] for move in found["moves"]}
    assert moves["invalid-json", "invalid-json"] == [5]
    assert next(lines for (_, becomes), lines in moves.items() if becomes == "passes") == [1, 4]


def test_a_replay_of_one_line_looks_at_nothing_else(write) -> None:
    folder = write("rows.jsonl", rows(["a", "b", "c"], ["a"], ["a", "b"])).parent
    found = replay_rows(folder, CHATS, ["drop-trailing-user"], line=1).as_json()
    assert (found["rows"], found["passes"]) == (1, 1)


def test_a_replay_reads_rows_as_another_dialect(write) -> None:
    folder = write(
        "rows.jsonl", rows({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})
    ).parent
    assert replay_rows(folder, CHATS).as_json()["passes"] == 0
    assert replay_rows(folder, CHATS, dialect="sharegpt").as_json()["passes"] == 1


def test_a_profile_and_a_replay_read_the_very_file(tmp_path: Path, write) -> None:
    folder = write("rows.jsonl", rows(["a", "b"])).parent
    assert profile_of(folder, CHATS).accepted == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]
