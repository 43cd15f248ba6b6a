from __future__ import annotations

import json

from turnmill.shelf.manifest import Manifest
from turnmill.shelf.row_views import row_at

CHATS = Manifest("chats", "rows.jsonl", dialect="openai")


def test_a_mended_row_says_what_mended_it(write) -> None:
    turns = [{"role": role, "content": "x"} for role in ("user", "assistant", "user")]
    folder = write("rows.jsonl", json.dumps({"messages": turns})).parent
    before, after = row_at(folder, CHATS, 1), row_at(folder, CHATS, 1, ["drop-trailing-user"])
    assert (before["code"], before["stage"], before["repairs"]) == ("last-turn-not-assistant", "check", [])
    assert (after["code"], after["repairs"]) == (None, ["drop-trailing-user"])


def test_a_row_of_bytes_that_are_no_text_is_shown(write) -> None:
    folder = write("rows.jsonl", b'{"messages": "\xff"}').parent
    found = row_at(folder, CHATS, 1)
    assert (found["code"], found["stage"], found["record"]) == ("invalid-utf8", "read", None)
    assert "\ufffd" in found["raw"]


def test_a_row_that_no_dialect_reads_is_shown_without_a_conversation(write) -> None:
    found = row_at(write("rows.jsonl", b'{"messages": 7, "n": 1e3}').parent, CHATS, 1)
    assert (found["stage"], found["conversation"]) == ("convert", None)
    assert bytes(found["record"]) == b'{"messages": 7, "n": 1000.0}'
