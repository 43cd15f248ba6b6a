"""Lines of agents' sessions, as Claude Code and Codex write them: made for tests, with nothing of anybody's."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from turnmill.contract import check
from turnmill.dialects import Reading, convert, dialects
from turnmill.dialects.neutral import neutral_turns
from turnmill.errors import Rejected
from turnmill.files.record import Piece, Record, Shard
from turnmill.files.sessions import gathered
from turnmill.options import Check

LIMIT = 1 << 26
SHARD = Shard("s", "p", "s.jsonl", "lines", "none", 0, "", "", 0, 0, 1, 0, 0)


def text(said: str) -> dict:
    return {"type": "text", "text": said}


def thinking(said: str) -> dict:
    return {"type": "thinking", "thinking": said, "signature": "c2ln"}


def use(identity: str, name: str = "Bash", **arguments: Any) -> dict:
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments or {"command": "ls"}}


def result(identity: str, content: Any = "out", **more: Any) -> dict:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def event(kind: str, uuid: str, parent: str | None, **more: Any) -> dict:
    """An event of a Claude Code log."""
    place = {"cwd": "/home/ana/p", "sessionId": "s1", "version": "2.1.29", "gitBranch": "main", "userType": "external"}
    return {"parentUuid": parent, "isSidechain": False, **place, "type": kind, "uuid": uuid, **more}


def user(uuid: str, parent: str | None, *content: Any, **more: Any) -> dict:
    """A prompt, or results in blocks."""
    said = content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)
    return event("user", uuid, parent, message={"role": "user", "content": said}, **more)


def assistant(uuid: str, parent: str | None, *blocks: Any, response: str | None = None, **more: Any) -> dict:
    """One line of a response; those of one response share its id."""
    content = [text(block) if isinstance(block, str) else block for block in blocks]
    message = {"id": response or f"msg_{uuid}", "type": "message", "role": "assistant", "model": "claude-opus-4-5"}
    usage = {"usage": {"input_tokens": 3}, "stop_reason": None}
    return event("assistant", uuid, parent, message={**message, "content": content, **usage}, requestId="r", **more)


def side(lines: Iterable[dict], agent: str = "ab12") -> list[dict]:
    """The lines as a sub-agent's."""
    return [{**line, "isSidechain": True, "agentId": agent} for line in lines]


def line(kind: str, **payload: Any) -> dict:
    """A line of a Codex rollout."""
    return {"timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload}


def item(kind: str, **payload: Any) -> dict:
    """A response item of a Codex rollout."""
    return line("response_item", type=kind, **payload)


def said(role: str, *texts: str) -> dict:
    """A message of a Codex rollout."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": one} for one in texts])


def prompt(asked: str) -> list[dict]:
    """What a user types: the message, and the event that shows it."""
    return [said("user", asked), line("event_msg", type="user_message", message=asked)]


def call(identity: str, name: str = "shell", **arguments: Any) -> dict:
    return item("function_call", name=name, call_id=identity, arguments=json.dumps(arguments or {"command": ["ls"]}))


def output(identity: str, shown: Any = "out") -> dict:
    return item("function_call_output", call_id=identity, output=shown)


META = line("session_meta", id="x1", cwd="/home/ana/p", source="cli", base_instructions={"text": "Be Codex."})


def rows_of(name: str, lines: Iterable[Any], counts: Counter[str] | None = None, limit: int = LIMIT) -> list[Record]:
    """The rows that a session dialect gathers out of lines; a line of bytes stands as it is."""
    raw = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines]
    pieces = (Piece(number, 0, one) for number, one in enumerate(raw, 1) if one)
    found = gathered(pieces, name, limit, Counter() if counts is None else counts)
    return [one.record(msgspec.structs.replace(SHARD, session=name), row) for row, one in enumerate(found)]


def outcome(name: str, row: Record, reading: Reading | None = None) -> Any:
    """The turns of a row, or the code that it leaves with."""
    if row.fault is not None:
        return row.fault.code
    try:
        conversation = convert(row.value, dialects.get(name), reading or Reading())
        return neutral_turns(check(conversation, Check(invalid_tool_call="retain")))
    except Rejected as rejected:
        return rejected.code


def outcomes(name: str, lines: Iterable[Any], counts: Counter[str] | None = None) -> list[Any]:
    """Of each row of a session its turns, or its code."""
    counts = Counter() if counts is None else counts
    return [outcome(name, row, Reading(counts=counts)) for row in rows_of(name, lines, counts)]
