"""The ways that a Codex session went: a rollout is in order, but undone turns and compactions change what comes before.

The history that the model saw is followed line by line. Where it changes, a thread ends: turns that were undone leave
an abandoned one; a compaction begins a new one with what was put in place of the history, where that is recorded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from turnmill.conversation import Json
from turnmill.dialects.histories import History
from turnmill.dialects.sessions import Event, Thread, in_file_order

CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
COMPACTED = ("compaction", "compaction_summary", "context_compaction")
"""Items that stand for a history which only the server can read."""
SNAPSHOTS = ("ghost_snapshot",)
"""Items that the model never saw."""


def threads_of_rollout(events: Sequence[Event], counts: Counter[str]) -> list[Thread]:
    """The threads of all lines of a rollout, in file order."""
    rollout = _Rollout(events, counts)
    for number, event in enumerate(events):
        why = rollout.add(event)
        if why is not None:
            rollout.history.end()
            rollout.history.give_up([item for item in map(_item_of, events[number:]) if item is not None], why)
            break
    else:
        rollout.history.end()
    return in_file_order(rollout.history.threads)


def _value(event: Event) -> dict[str, Json]:
    return event.value or {}


def _item_of(event: Event) -> Event | None:
    """The response item of a line, None for another line."""
    if event.value is None or event.value["type"] != "response_item":
        return None
    return event._replace(value=event.value["payload"])


def _is_answer(item: Event) -> bool:
    value = _value(item)
    return value.get("type") in CALLS or (value.get("type") == "message" and value.get("role") == "assistant")


def _is_output(item: Event) -> bool:
    return str(_value(item).get("type")).endswith("_output")


def _is_user(item: Event) -> bool:
    return _value(item).get("type") == "message" and _value(item).get("role") == "user"


class _Rollout:
    """A rollout, followed line by line.

    Args:
        events: all of its lines.
        counts: takes lines that say nothing.
    """

    def __init__(self, events: Sequence[Event], counts: Counter[str]) -> None:
        self.history = History(_is_answer, self._columns, counts)
        self._counts = counts
        self._turns: list[int] = []
        """Of each turn of the user how many items stood before it was shown."""
        self._meta: dict[str, Json] = {}
        self._ended: str | None = None
        self._began = 0
        """Line of the compaction that began this history; 0 before the first."""
        items = [item for item in map(_item_of, events) if item is not None]
        self._answered = {str(_value(item).get("call_id")) for item in items if _is_output(item)}

    def add(self, event: Event) -> str | None:
        """Follow the history by a line; gives why it cannot be followed further."""
        if event.value is None:
            return "a line before cannot be read"
        kind, payload = event.value["type"], event.value["payload"]
        if kind == "response_item":
            return self._add_item(event._replace(value=payload))
        if kind == "session_meta":
            if self._meta:
                self._counts["read/event-dropped/session_meta"] += 1
            self._meta = self._meta or payload
        elif kind == "compacted":
            return self._compact(event, payload.get("replacement_history"))
        elif kind == "user_message":
            self._turns.append(len(self.history.items))
        elif kind == "thread_rolled_back":
            return self._undo(payload.get("num_turns"))
        else:
            self._ended = _ending(kind, payload)
        return None

    def _add_item(self, item: Event) -> str | None:
        kind = _value(item).get("type")
        if kind in SNAPSHOTS:
            self._counts[f"read/event-dropped/{kind}"] += 1
            return None
        if kind in COMPACTED:
            return "the history before them was compacted, and what took its place is encrypted"
        if _is_user(item) and self._has_open_call():
            return "calls before them were given up, and what the model was told of that is not recorded"
        self.history.add(item)
        return None

    def _has_open_call(self) -> bool:
        """Whether a call of the last turn never gets its output."""
        for item in reversed(self.history.items):
            value = _value(item)
            if _is_user(item):
                return False
            if value.get("type") in CALLS and str(value.get("call_id") or value.get("id")) not in self._answered:
                return True
        return False

    def _compact(self, event: Event, replaced: Json) -> str | None:
        self.history.end()
        if not isinstance(replaced, list) or not all(isinstance(item, dict) for item in replaced):
            return "the history before them was compacted, and what took its place is not recorded"
        sizes = [event.bytes, *[0] * len(replaced)]  # the items of one line
        self.history.replace([Event(event.line, item, size) for item, size in zip(replaced, sizes, strict=False)])
        self._turns = [number for number, item in enumerate(self.history.items) if _is_user(item)]
        self._began = event.line
        return None

    def _undo(self, turns: Json) -> str | None:
        if not isinstance(turns, int) or turns < 1 or turns > len(self._turns):
            return "turns before them were undone, and it is not recorded which"
        self.history.end("abandoned")
        items = self.history.items
        end = shown = self._turns[-turns]
        kept = self._turns[-turns - 1] if turns < len(self._turns) else 0  # what stood there when it was shown stays
        while end > kept and not (_is_answer(items[end - 1]) or _is_output(items[end - 1])):
            end -= 1  # what the harness said with the user goes with it
        if not end:  # but for what it said at the very beginning
            end = shown - bool(shown and _is_user(items[shown - 1]))
        self.history.replace(items[:end])
        del self._turns[-turns:]
        return None

    def _columns(self, items: Sequence[Event], branch: str | None) -> dict[str, Json]:
        meta = self._meta
        name, started_by, agent = meta.get("id"), *_agent(meta)
        if branch is not None or not self.history.items or items[0] is not self.history.items[0]:
            name = f"{name}@{items[-1].line}"  # an abandoned branch, or what was given up
        elif self._began:
            name = f"{name}@{self._began}"
        instructions = meta.get("base_instructions")
        tools = meta.get("dynamic_tools")
        return {
            "id": name,
            "session": meta.get("id"),
            "agent": agent,
            "parent": started_by or meta.get("forked_from_id"),
            "branch": branch,
            "ended": self._ended,
            "system": instructions.get("text") if isinstance(instructions, dict) else instructions,
            "tools": [_definition(tool) for tool in tools] if isinstance(tools, list) and tools else None,
        }


def _definition(tool: Json) -> Json:
    if not isinstance(tool, dict):
        return tool
    return {"input_schema" if key == "inputSchema" else key: value for key, value in tool.items()}


def _agent(meta: dict[str, Json]) -> tuple[Json, Json]:
    """The session that started a sub-agent, and the sub-agent's name; nothing for the main one."""
    source = meta.get("source")
    started = source.get("subagent", source.get("sub_agent")) if isinstance(source, dict) else None
    detail = started.get("thread_spawn") if isinstance(started, dict) else None
    detail = detail if isinstance(detail, dict) else {}
    names = [meta.get(key) or detail.get(key) for key in ("agent_nickname", "agent_role", "agent_path")]
    kind = next(iter(started), None) if isinstance(started, dict) else started
    return detail.get("parent_thread_id"), next((name for name in names if name), kind)


def _ending(kind: str, payload: dict[str, Json]) -> str | None:
    """How a run ended so far, by the last event that says so."""
    if kind == "turn_aborted":
        return str(payload.get("reason") or "interrupted")
    return "error" if kind == "error" else None
