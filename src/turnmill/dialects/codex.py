"""Codex sessions: rollout files, whose lines are what the model said and was told, beside what the screen showed.

Only `response_item` lines are read, for they are what the model saw; `event_msg` lines repeat them for people, and
tell where turns were undone and how the run ended. The model's own reasoning is encrypted: its summary is taken where
one was asked for, the text itself where a local model gave it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.calls import read_arguments, read_call_id
from turnmill.dialects.codex_threads import threads_of_rollout
from turnmill.dialects.content import read_content
from turnmill.dialects.recorded import Call, Utterance
from turnmill.dialects.sessions import Session, sessions
from turnmill.dialects.traces import open_trace, read_trace
from turnmill.dialects.turns import SPEAKERS, Manner, read_speaker, settle_answer
from turnmill.errors import MAX_QUOTED_CHARACTERS, Rejected, quote

NAME = "codex"
LINES = ("session_meta", "response_item", "compacted", "event_msg", "turn_context")
"""Types of a rollout's lines."""
CALLS = ("function_call", "function_call_output", "local_shell_call", "custom_tool_call", "custom_tool_call_output")
META = (
    "id", "forked_from_id", "source", "agent_nickname", "agent_role", "agent_path", "base_instructions",
    "dynamic_tools",
)  # fmt: skip
"""Keys of `session_meta` that are read."""
TOLD = ("user_message", "thread_rolled_back", "task_started", "task_complete", "turn_aborted", "error")
"""Types of events that say where turns begin, what was undone, and how the run ended."""
NO_RESULT = ("web_search_call", "image_generation_call")
"""Calls that the server answers itself, and whose results are not recorded."""

MANNER = Manner({role: SPEAKERS[role] for role in ("system", "developer", "user", "assistant")})


def _tell(sample: Sequence[dict[str, Json]]) -> str | None:
    for line in sample:
        kind = line.get("type")
        if kind in LINES and isinstance(line.get("payload"), dict):
            return f"lines of type {kind} with payload"
        if kind in CALLS and isinstance(line.get("call_id"), str):
            return f"lines of type {kind}"
    return None


def _take(line: dict[str, Json], counts: Counter[str]) -> dict[str, Json] | None:
    kind, payload = line.get("type"), line.get("payload")
    if not isinstance(payload, dict):  # early rollouts have bare items behind a first line of id and instructions
        kind, payload = ("response_item" if kind is not None else "session_meta" if "id" in line else "state"), line
    if kind == "response_item":
        taken = _taken_item(payload)
    elif kind == "session_meta":
        taken = {key: payload[key] for key in META if payload.get(key) is not None}
    elif kind == "compacted":
        taken = {"replacement_history": payload.get("replacement_history")}
    else:
        taken = {key: payload[key] for key in ("type", "reason", "num_turns") if key in payload}
        kind = str(taken.get("type") if kind == "event_msg" else kind)
        if kind not in TOLD:
            counts[f"read/event-dropped/{kind[:MAX_QUOTED_CHARACTERS]}"] += 1
            return None
    return {"type": kind, "payload": taken}


def _taken_item(item: dict[str, Json]) -> dict[str, Json]:
    """An item without its ciphertext; that there was some stays."""
    return {key: "" if key == "encrypted_content" and value else value for key, value in item.items()}


sessions[NAME] = Session(_tell, _take, threads_of_rollout)


@dialect(NAME)
def codex(record: dict[str, Json], reading: Reading) -> Conversation:
    """Codex sessions: rollout JSONL of response items; a row for each way that the session went."""
    fields, items = open_trace(record, reading)
    utterances = [said for index, item in enumerate(items) if (said := _utterance(item, index, reading)) is not None]
    return read_trace(fields, utterances, reading)


def _utterance(item: dict[str, Json], index: int, reading: Reading) -> Utterance | None:
    kind = item.get("type")
    read = ITEMS.get(kind) if isinstance(kind, str) else None
    if read is not None:
        return read(item, index, reading)
    if kind not in NO_RESULT:
        raise Rejected("unknown-content-part", f"an item is of type {quote(kind)}", at=index)
    reading.counts[f"read/call-without-result-dropped/{kind}"] += 1
    return None


def _message(item: dict[str, Json], index: int, reading: Reading) -> Utterance:
    speaker = read_speaker(item.get("role"), index, MANNER, reading)
    if speaker == "function_call" or speaker == "tool":
        raise Rejected("unknown-speaker", f"{speaker} speaks in a message", at=index)
    said = Utterance(index, speaker, _text(item.get("content"), index, reading))
    if speaker == "assistant":
        settle_answer(said, "", reading)
    return said


def _text(value: Json, index: int, reading: Reading) -> str:
    content = read_content(value, index, reading.counts)
    if content.calls or content.reasoning or content.tools is not None:
        raise Rejected("unknown-content-part", "an item's content holds other parts than text", at=index)
    return content.text


def _reasoning(item: dict[str, Json], index: int, reading: Reading) -> Utterance | None:
    """The model's reasoning, else its summary."""
    for key, counter in (("content", None), ("summary", "read/reasoning-summarised")):
        text = "\n\n".join(_texts(item.get(key)))
        if text.strip():
            if counter:
                reading.counts[counter] += 1
            return Utterance(index, "assistant", reasoning=text)
    if "encrypted_content" in item:
        reading.counts["read/reasoning-withheld"] += 1
    return None


def _texts(parts: Json) -> Iterable[str]:
    for part in parts if isinstance(parts, list) else ():
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str) and text:
            yield text


def _function_call(item: dict[str, Json], index: int, reading: Reading) -> Utterance:
    name, namespace = item.get("name"), item.get("namespace")
    if not isinstance(name, str) or not name:
        raise Rejected("tool-call-malformed", f"a call's name is {quote(name)}; expected text", at=index)
    whole = f"{namespace}.{name}" if isinstance(namespace, str) and namespace else name
    return _call(whole, item.get("arguments"), item.get("call_id"), index, reading)


def _custom_call(item: dict[str, Json], index: int, reading: Reading) -> Utterance:
    """A call whose input is free text: an argument named as the item names it."""
    reading.counts["read/free-text-call"] += 1
    return _function_call({**item, "arguments": {"input": item.get("input")}}, index, reading)


def _shell_call(item: dict[str, Json], index: int, reading: Reading) -> Utterance:
    return _call("local_shell", item.get("action"), item.get("call_id") or item.get("id"), index, reading)


def _search_call(item: dict[str, Json], index: int, reading: Reading) -> Utterance:
    return _call("tool_search", item.get("arguments"), item.get("call_id"), index, reading)


def _call(name: str, arguments: Json, identity: Json, index: int, reading: Reading) -> Utterance:
    call = Call(name, read_arguments(arguments, name, index, reading.counts), read_call_id(identity, index))
    return Utterance(index, "assistant", calls=(call,))


def _output(item: dict[str, Json], index: int, reading: Reading) -> Utterance:
    output = item.get("output")
    if isinstance(output, dict) and "content" in output:
        output = output["content"]
    reply_to = read_call_id(item.get("call_id"), index)
    return Utterance(index, "tool", _text(output, index, reading), reply_to=reply_to)


def _search_output(item: dict[str, Json], index: int, reading: Reading) -> Utterance:
    """Found tools, whose definitions are no text: that the search was answered is kept."""
    reading.counts["read/tool-references-dropped"] += 1
    return Utterance(index, "tool", reply_to=read_call_id(item.get("call_id"), index))


ITEMS: dict[str, Callable[[dict[str, Json], int, Reading], Utterance | None]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
    "local_shell_call": _shell_call,
    "tool_search_call": _search_call,
    "tool_search_output": _search_output,
}
"""Type of a response item → what it says."""
