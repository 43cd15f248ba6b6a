"""The conversations of an OpenHands run: events in order, and condensations that put a summary in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from turnmill.conversation import Json
from turnmill.dialects.histories import History
from turnmill.dialects.sessions import Event, Thread, in_file_order
from turnmill.errors import MAX_QUOTED_CHARACTERS

SOURCES = ("agent", "user", "environment")
SILENT = (
    "recall", "agent_state_changed", "change_agent_state", "null", "ConversationStateUpdateEvent", "PauseEvent",
    "CondensationRequest", "condensation_request", "LLMCompletionLogEvent", "TokenEvent",
)  # fmt: skip
"""Kinds of events that the model does not see as they are recorded."""
CONDENSATIONS = ("condensation", "Condensation")
OF_THE_SDK = ("llm_message", "tool_call", "tool_call_id", "system_prompt", "key")
"""Keys by one of which each event of the SDK that a run begins with is known."""
RESPONSE = ("id", "choices")
"""Keys of a model's response that are read."""


def kind_of(event: dict[str, Json]) -> str:
    """What an event is: the SDK's kind, or the application's action or observation."""
    kind = event.get("kind") or event.get("action") or event.get("observation")
    return kind[:MAX_QUOTED_CHARACTERS] if isinstance(kind, str) else "unknown"


def is_event(record: dict[str, Json]) -> bool:
    """Whether a record is an event of a run."""
    if record.get("source") not in SOURCES:
        return False
    if isinstance(record.get("kind"), str) and record["kind"].endswith(("Event", "Observation", "Condensation")):
        return any(
            key in record for key in ("llm_message", "tool_call", "observation", "system_prompt", "key", "error")
        )
    acts = isinstance(record.get("action"), str) and isinstance(record.get("args"), dict)
    return acts or (isinstance(record.get("observation"), str) and isinstance(record.get("extras"), dict))


def slim(event: dict[str, Json], counts: Counter[str]) -> dict[str, Json] | None:
    """An event without figures and copies of what it says; None for one that the model does not see."""
    kind = kind_of(event)
    if kind in SILENT or event.get("hidden"):
        counts[f"read/event-dropped/{kind}"] += 1
        return None
    dropped = ("llm_metrics", "message", "timestamp", "extras", "action" if "kind" in event else "timeout")
    taken = {key: value for key, value in event.items() if key not in dropped}
    metadata = event.get("tool_call_metadata")
    response = metadata.get("model_response") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(response, dict):
        answer = {key: response[key] for key in RESPONSE if key in response} if "action" in event else None
        taken["tool_call_metadata"] = {**metadata, "model_response": answer}
    return taken


def _value(event: Event) -> dict[str, Json]:
    return event.value or {}


def _is_answer(event: Event) -> bool:
    value = _value(event)
    if value.get("kind"):
        return value["kind"] == "ActionEvent" or (value["kind"] == "MessageEvent" and value.get("source") == "agent")
    return isinstance(value.get("action"), str) and value.get("source") == "agent" and value["action"] != "system"


def threads_of_run(events: Sequence[Event], counts: Counter[str]) -> list[Thread]:
    """The threads of all events of a run and of the agents that it delegated to, in file order."""
    found: list[Thread] = []
    for linked, own in _by_agent(events):
        run = _Run(linked, counts)
        for number, event in enumerate(own):
            why = run.add(event)
            if why is not None:
                run.history.end()
                run.history.give_up([later for later in own[number:] if later.value is not None], why)
                break
        else:
            run.history.end()
        found += run.history.threads
    return in_file_order(found)


def _by_agent(events: Sequence[Event]) -> list[tuple[dict[str, Json], list[Event]]]:
    """The events of the main agent, then those of each agent that another one delegated to, with its columns."""
    main: tuple[dict[str, Json], list[Event]] = ({}, [])
    found, working = [main], [main]
    for event in events:
        if event.value is None:
            for _, own in found:
                own.append(event)  # it may be anybody's
            continue
        if event.value.get("observation") == "delegate" and len(working) > 1:
            working.pop()
        working[-1][1].append(event)
        if event.value.get("action") == "delegate" and "kind" not in event.value:
            arguments, metadata = event.value.get("args"), event.value.get("tool_call_metadata")
            agent = arguments.get("agent") if isinstance(arguments, dict) else None
            call = metadata.get("tool_call_id") if isinstance(metadata, dict) else None
            working.append(({"agent": agent, "parent_call": call}, []))
            found.append(working[-1])
    return found


class _Run:
    """A run, followed event by event.

    Args:
        linked: the columns that link it.
        counts: takes events that say nothing.
    """

    def __init__(self, linked: dict[str, Json], counts: Counter[str]) -> None:
        self.history = History(_is_answer, self._columns, counts)
        self._linked = linked
        self._responses: set[str] = set()

    def add(self, event: Event) -> str | None:
        """Follow the history by an event; gives why it cannot be followed further."""
        if event.value is None:
            return "a line before cannot be read"
        if kind_of(event.value) in CONDENSATIONS:
            return self._condense(event)
        if self._is_further_action(event.value):
            return None
        self.history.add(event)
        return None

    def _is_further_action(self, value: dict[str, Json]) -> bool:
        """Whether this is another action of a response that stands already, whole, at its first one."""
        metadata = value.get("tool_call_metadata")
        response = metadata.get("model_response") if isinstance(metadata, dict) and "action" in value else None
        identity = response.get("id") if isinstance(response, dict) else None
        if not isinstance(identity, str):
            return False
        if identity in self._responses:
            return True
        self._responses.add(identity)
        return False

    def _condense(self, event: Event) -> str | None:
        """Forget events and put the summary in their place, as the harness does."""
        value = _value(event)
        arguments = value.get("args")
        detail = arguments if isinstance(arguments, dict) else value
        forgotten = _forgotten(detail)
        if forgotten is None:
            return "the history before them was condensed, and it is not recorded what was forgotten"
        self.history.end()
        kept = [item for item in self.history.items if _value(item).get("id") not in forgotten]
        summary, offset = detail.get("summary"), detail.get("summary_offset")
        if isinstance(summary, str) and summary:
            told = {"kind": "CondensationSummaryEvent", "summary": summary, "source": "environment"}
            place = offset if isinstance(offset, int) else len(kept)
            kept.insert(place, Event(event.line, told, event.bytes))
        self.history.replace(kept)
        return None

    def _columns(self, items: Sequence[Event], branch: str | None) -> dict[str, Json]:
        errors = [item for item in items if _value(item).get("observation") == "error"]
        is_last = bool(errors) and errors[-1] is items[-1]
        return {**self._linked, "branch": branch, "ended": "error" if is_last else None}


def _forgotten(detail: Json) -> set[Json] | None:
    """Ids of the events that a condensation forgets, None where it does not say."""
    if not isinstance(detail, dict):
        return None
    listed = detail.get("forgotten_event_ids")
    if isinstance(listed, list):
        return {identity for identity in listed if isinstance(identity, (int, str))}
    first, last = detail.get("forgotten_events_start_id"), detail.get("forgotten_events_end_id")
    if isinstance(first, int) and isinstance(last, int) and 0 <= last - first <= 1_000_000:
        return set(range(first, last + 1))
    return None
