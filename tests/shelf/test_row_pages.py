from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnmill.shelf.manifest import Manifest
from turnmill.shelf.reading import Place
from turnmill.shelf.row_facts import MAX_EXCERPT_CHARACTERS
from turnmill.shelf.row_pages import Page, Wanted, page_of

CHATS = Manifest("chats", "rows.jsonl", dialect="openai")
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ROWS: list[dict[str, Any]] = [
    {"messages": [{"role": "user", "content": "Straße"}, {"role": "assistant", "content": "yes"}], "source": "web"},
    {"messages": [{"role": "user", "content": "alone"}]},
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "look " * 100},
            {"role": "assistant", "content": None, "reasoning_content": "I look.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "1", "content": "seen"},
            {"role": "assistant", "content": "done"},
        ],
        "tools": [TOOL],
    },
]  # fmt: skip


@pytest.fixture
def page(write) -> Callable[..., Page]:
    """Asks for rows of the file that also has one that is not JSON."""
    folder = write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS) + "not JSON\n").parent

    def call(place: Place | None = None, limit: int = 50, **wanted: Any) -> Page:
        return page_of(folder, CHATS, Wanted(**wanted), place or Place(), limit)

    return call


def test_rows_are_told_by_what_they_are(page) -> None:
    web, alone, tools, broken = page().rows
    assert (web.code, web.source, web.turns, web.roles, web.characters) == (None, "web", 2, "u a", 9)
    assert (alone.id, alone.code, alone.source, alone.roles) == (None, "no-assistant-turn", "chats", "u")
    assert (tools.roles, tools.has_reasoning, tools.has_tool_calls, tools.has_tools) == ("s u a t a", True, True, True)
    assert (broken.code, broken.turns, broken.has_tools, broken.excerpt) == ("invalid-json", None, None, "not JSON")
    assert len(tools.excerpt) == MAX_EXCERPT_CHARACTERS
    assert tools.excerpt.endswith("…")


@pytest.mark.parametrize(
    ("wanted", "lines"),
    [
        ({}, [1, 2, 3, 4]),
        ({"text": "STRASSE"}, []),
        ({"text": "STRAßE"}, [1]),
        ({"text": "NOT json"}, [4]),
        ({"text": "tool_calls"}, []),
        ({"code": "none"}, [1, 3]),
        ({"code": "any"}, [2, 4]),
        ({"code": "invalid-json"}, [4]),
        ({"source": "web"}, [1]),
        ({"source": "chats"}, [2, 3, 4]),
        ({"role": "tool"}, [3]),
        ({"min_turns": 2}, [1, 3]),
        ({"max_turns": 2}, [1, 2]),
        ({"min_turns": 1, "max_turns": 1}, [2]),
        ({"min_characters": 10}, [3]),
        ({"max_characters": 9}, [1, 2]),
        ({"reasoning": True}, [3]),
        ({"reasoning": False}, [1, 2]),
        ({"calls": True, "tools": True, "text": "done", "code": "none"}, [3]),
    ],
)
def test_only_wanted_rows_are_on_a_page(page, wanted: dict[str, Any], lines: list[int]) -> None:
    found = page(**wanted)
    assert [row.line for row in found.rows] == lines
    assert (found.next, found.scanned) == (None, 4)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_go_on_where_the_one_before_ended(page, limit: int) -> None:
    found, place = [], Place()
    while place is not None:
        one = page(place, limit)
        found += [row.line for row in one.rows]
        place = one.next
    assert found == [1, 2, 3, 4]


def test_a_page_ends_in_time_and_says_where(page, tmp_path: Path) -> None:
    found = page_of(tmp_path, CHATS, Wanted(text="nowhere"), Place(), 50, max_seconds=-1)
    assert (found.rows, found.scanned, found.next.line) == ([], 1, 2)


def test_a_row_of_many_turns_is_told_by_the_first(write) -> None:
    turns = [{"role": role, "content": "x"} for role in ("user", "assistant") * 100]
    folder = write("rows.jsonl", json.dumps({"messages": turns})).parent
    (row,) = page_of(folder, CHATS, Wanted(), Place(), 1).rows
    assert (row.turns, len(row.roles.split())) == (200, 49)
