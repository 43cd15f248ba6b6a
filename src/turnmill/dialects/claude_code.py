"""Claude Code sessions: the log that it keeps of each, and what `claude -p --output-format stream-json` prints.

A log's events are linked to their parents, so that a session has branches; a printed stream is in order, and the events
of a sub-agent name the call that started it. Neither holds the system prompt or tool definitions. What the harness
makes up only as it sends it (attachments, but for prompts typed meanwhile) is not recorded and cannot be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.anthropic import utterances_of
from turnmill.dialects.claude_threads import is_synthetic, threads_of_tree, value_of
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.sessions import Event, Session, Thread, in_file_order, sessions, thread, torn
from turnmill.dialects.traces import open_trace, read_trace
from turnmill.errors import MAX_QUOTED_CHARACTERS

NAME = "claude-code"
LINKS = (
    "type", "subtype", "uuid", "parentUuid", "sessionId", "session_id", "isSidechain", "agentId", "forkedFrom",
    "parent_tool_use_id", "compactMetadata",
)  # fmt: skip
"""Keys of every event that say where it stands."""
SPOKEN = (*LINKS, "isApiErrorMessage", "isCompactSummary")
MESSAGE = ("id", "role", "model", "content")
"""Keys of an API message that are read."""
SPEAKERS = ("user", "assistant")
BOOKKEEPING = {"summary": "leafUuid", "file-history-snapshot": "messageId"}
"""Types of events that only a log has, each with a key of its own."""
WITHHELD = ("thinking", "redacted_thinking")


def _tell(sample: Sequence[dict[str, Json]]) -> str | None:
    for event in sample:
        kind = event.get("type")
        if isinstance(kind, str) and "parentUuid" in event and "uuid" in event and "sessionId" in event:
            return "events with parentUuid and sessionId"
        if kind in SPEAKERS and isinstance(event.get("message"), dict) and "session_id" in event:
            return "events with message and session_id"
    if sample and all(BOOKKEEPING.get(str(event.get("type")), "") in event for event in sample):
        return f"events of type {sample[0]['type']}"
    return None


def _take(event: dict[str, Json], counts: Counter[str]) -> dict[str, Json] | None:
    kind = event.get("type")
    message, detail = event.get("message"), event.get("toolUseResult")
    if kind in SPEAKERS and isinstance(message, dict) and not event.get("isVirtual"):
        taken = {key: event[key] for key in SPOKEN if key in event}
        taken["message"] = {key: message[key] for key in MESSAGE if key in message}
        if isinstance(detail, dict) and "agentId" in detail:
            taken["toolUseResult"] = {"agentId": detail["agentId"]}
        return taken
    taken = {key: event[key] for key in LINKS if key in event}
    attachment = event.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command" and "prompt" in attachment:
        return taken | {"attachment": {"type": "queued_command", "prompt": attachment["prompt"]}}
    if (kind, event.get("subtype")) == ("system", "local_command") and "content" in event:
        return taken | {"content": event["content"]}
    if kind not in ("result", "system"):
        counts[f"read/event-dropped/{str(kind)[:MAX_QUOTED_CHARACTERS]}"] += 1
    return taken if "uuid" in event or "session_id" in event else None


def _threads(events: Sequence[Event], counts: Counter[str]) -> list[Thread]:
    if any("parentUuid" in value_of(event) for event in events):
        return threads_of_tree(events, counts)
    return in_file_order(_threads_in_order(events))


def _threads_in_order(events: Sequence[Event]) -> Iterator[Thread]:
    """The main agent's thread and one for each call that started a sub-agent; a line that cannot be read ends them."""
    readable = next((number for number, event in enumerate(events) if event.value is None), len(events))
    for stretch, fault in ((events[:readable], None), (events[readable:], torn("a line before cannot be read"))):
        runs: dict[Json, list[Event]] = {}
        for event in stretch:
            if event.value is not None:
                runs.setdefault(str(event.value.get("parent_tool_use_id") or ""), []).append(event)
        for call, run in runs.items():
            spoken = [event for event in run if "message" in value_of(event)]
            if any(fault or value_of(event)["type"] == "assistant" for event in spoken):
                yield thread(spoken, fault=fault, **_columns(run, call))


def _columns(run: Sequence[Event], call: str) -> dict[str, Json]:
    session = next((value["session_id"] for event in run if (value := value_of(event)).get("session_id")), None)
    ended = next((value_of(event).get("subtype") for event in run if value_of(event).get("type") == "result"), None)
    linked = {"id": session, "session": session, "ended": None if ended == "success" else ended}
    if not call:
        return linked
    return linked | {"id": f"{session}/{call}", "agent": call, "parent": session, "parent_call": call}


sessions[NAME] = Session(_tell, _take, _threads)


@dialect(NAME)
def claude_code(record: dict[str, Json], reading: Reading) -> Conversation:
    """Claude Code sessions: JSONL logs by parentUuid, or stream-json; a row for each branch and sub-agent."""
    fields, events = open_trace(record, reading)
    return read_trace(fields, _utterances(events, reading), reading)


def _utterances(events: Sequence[dict[str, Json]], reading: Reading) -> list[Utterance]:
    """What the events say; the lines of one response are one message."""
    said: list[Utterance] = []
    numbered = [(index, event) for index, event in enumerate(events) if not _is_dropped(event, reading.counts)]
    for _, run in groupby(numbered, key=_response):
        parts = list(run)
        blocks = [block for _, event in parts for block in _blocks(event, reading.counts)]
        role = "assistant" if parts[0][1].get("type") == "assistant" else "user"
        if blocks:
            said += utterances_of({"role": role, "content": blocks}, parts[0][0], reading)
    return said


def _is_dropped(event: dict[str, Json], counts: Counter[str]) -> bool:
    if event.get("type") == "assistant" and is_synthetic(event):
        counts["read/synthetic-answer-dropped"] += 1
        return True
    return False


def _response(numbered: tuple[int, dict[str, Json]]) -> tuple[str, Json]:
    """What the lines of one response share; every other event stands for itself."""
    index, event = numbered
    message = event.get("message")
    identity = message.get("id") if isinstance(message, dict) and event.get("type") == "assistant" else None
    return ("response", identity) if isinstance(identity, str) else ("event", index)


def _blocks(event: dict[str, Json], counts: Counter[str]) -> list[Json]:
    """The blocks that an event says, without what nobody can read."""
    content = _content(event)
    if content is None or content == "":
        return []
    if not isinstance(content, list):
        return [{"type": "text", "text": content}]
    return [_readable(block, counts) for block in content if not _is_withheld(block, counts)]


def _content(event: dict[str, Json]) -> Json:
    message, attachment = event.get("message"), event.get("attachment")
    if isinstance(message, dict):
        return message.get("content")
    return attachment.get("prompt") if isinstance(attachment, dict) else event.get("content")


def _is_withheld(block: Json, counts: Counter[str]) -> bool:
    """Whether this is reasoning that was taken out of the log: there was some, and nobody can say what."""
    if not isinstance(block, dict) or block.get("type") not in WITHHELD:
        return False
    if block["type"] == "thinking" and (block.get("thinking") or not block.get("signature")):
        return False
    counts["read/reasoning-withheld"] += 1
    return True


def _readable(block: Json, counts: Counter[str]) -> Json:
    """A block; a result's without references to tools, which are no text."""
    if not isinstance(block, dict) or block.get("type") != "tool_result" or not isinstance(block.get("content"), list):
        return block
    texts = [part for part in block["content"] if not (isinstance(part, dict) and part.get("type") == "tool_reference")]
    if len(texts) == len(block["content"]):
        return block
    counts["read/tool-references-dropped"] += len(block["content"]) - len(texts)
    return {**block, "content": texts}
