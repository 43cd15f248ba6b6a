"""OpenHands runs: lists of events (of the application, or of the software agent SDK), and logs of single completions.

An action of the agent keeps the model's response that it came from, which is what is read; an action without one says
what was done and not what was written, and rejects its row. A result is the tool's recorded text: what the harness puts
around it only as it sends it (exit code, folder) is not recorded. A condensation changes what the model sees by what it
records, so that a new conversation begins with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.calls import read_call_id, read_calls
from turnmill.dialects.content import read_content, read_text
from turnmill.dialects.fields import Fields
from turnmill.dialects.openai import MANNER
from turnmill.dialects.openhands_threads import SILENT, is_event, kind_of, slim, threads_of_run
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.row import open_chat, read_row
from turnmill.dialects.sessions import Event, Session, sessions
from turnmill.dialects.traces import open_trace, read_trace
from turnmill.dialects.turns import read_message, settle_answer
from turnmill.errors import Rejected, quote

NAME = "openhands"


def _tell(sample: Sequence[dict[str, Json]]) -> str | None:
    for event in sample:
        if is_event(event):
            return f"events of kind {kind_of(event)}"
    return None


sessions[NAME] = Session(_tell, slim, threads_of_run, reads_rows=True)


@dialect(NAME)
def openhands(record: dict[str, Json], reading: Reading) -> Conversation:
    """OpenHands runs: event lists, rows with a `history` of them, and logs of completions."""
    if "response" in record and "messages" in record:
        return _completion(record, reading)
    if "history" in record and "events" not in record:
        record = _unfolded(record, reading.counts)
    fields, events = open_trace(record, reading)
    system, tools = _head(events)
    if tools:
        fields.rest["tools"] = tools
    utterances = [said for index, event in enumerate(events) for said in _utterances(event, index, reading)]
    return read_trace(fields, utterances, reading, system=system)


def _unfolded(record: dict[str, Json], counts: Counter[str]) -> dict[str, Json]:
    """A row's history as a thread: the last one, where a condensation made several."""
    history = record["history"]
    listed = [one for item in history for one in (item if isinstance(item, list) else [item])] if history else []
    taken = [slim(event, counts) if isinstance(event, dict) else {} for event in listed]
    threads = threads_of_run([Event(line, event) for line, event in enumerate(taken, 1) if event is not None], counts)
    if not threads:
        raise Rejected("no-messages", "the agent says nothing in the row's history")
    if len(threads) > 1:
        counts["read/condensed-history-dropped"] += len(threads) - 1
    last = threads[-1]
    if last.fault is not None:
        raise last.fault
    rest = {key: value for key, value in record.items() if key != "history"}
    names = ("events", "lines", "ended")
    return rest | {name: last.record[name] for name in names if name in last.record}


def _head(events: Sequence[dict[str, Json]]) -> tuple[str | None, Json]:
    """The system text and the tools of a run; None where it records none."""
    for event in events:
        if event.get("action") == "system":
            arguments = event.get("args")
            arguments = arguments if isinstance(arguments, dict) else {}
            return read_text(arguments.get("content"), "system"), arguments.get("tools")
        if event.get("kind") == "SystemPromptEvent":
            parts = [part for part in (event.get("system_prompt"), event.get("dynamic_context")) if part]
            text = "".join(read_text(part.get("text"), "system") for part in parts if isinstance(part, dict))
            return text, _with_schema(event.get("tools"))
    return None, None


def _with_schema(tools: Json) -> Json:
    """The tools, where each says what its arguments are: some versions write their names alone."""
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        return None
    keys = ("function", "parameters", "input_schema")
    return tools if all(any(key in tool for key in keys) for tool in tools) else None


def _utterances(event: dict[str, Json], index: int, reading: Reading) -> Iterator[Utterance]:
    kind = kind_of(event)
    if kind in ("system", "SystemPromptEvent"):
        return
    if "observation" in event and "kind" not in event:
        yield from _observation(event, index, reading)
    elif "action" in event and "kind" not in event:
        yield from _action(event, index, reading)
    elif kind in KINDS:
        yield from KINDS[kind](event, index, reading)
    elif kind not in SILENT:
        raise Rejected("unknown-content-part", f"an event is of kind {quote(kind)}", at=index)


def _action(event: dict[str, Json], index: int, reading: Reading) -> Iterator[Utterance]:
    arguments, source = event.get("args"), event.get("source")
    arguments = arguments if isinstance(arguments, dict) else {}
    answer = _recorded_answer(event)
    if answer is not None:
        yield read_message(answer, index, MANNER, reading)
        return
    if event.get("action") == "message":
        if arguments.get("image_urls"):
            raise Rejected("non-text-content", "a message shows pictures; turnmill reads text only", at=index)
        said = Utterance(index, "assistant" if source == "agent" else "user")
        said.text = read_text(arguments.get("content"), "a message", index)
        if said.role == "assistant":
            settle_answer(said, "", reading)
        yield said
    elif source == "agent":
        what = f"the agent's action {quote(event.get('action'))} does not say what the model wrote"
        raise Rejected("answer-not-recorded", what, at=index)
    else:
        reading.counts[f"read/event-dropped/{kind_of(event)}"] += 1


def _recorded_answer(event: dict[str, Json]) -> Json:
    """The message of the model's response that an action came from, None where none is recorded."""
    metadata = event.get("tool_call_metadata")
    response = metadata.get("model_response") if isinstance(metadata, dict) else None
    choices = response.get("choices") if isinstance(response, dict) else None
    message = (
        choices[0].get("message") if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    )
    if not isinstance(message, dict):
        return None
    keys = ("content", "tool_calls", "reasoning_content", "thinking_blocks")
    return _with_thinking({key: message[key] for key in keys if message.get(key)} | {"role": "assistant"})


def _with_thinking(message: dict[str, Json]) -> dict[str, Json]:
    """A message with its thinking blocks as reasoning, where no field holds it."""
    blocks = message.pop("thinking_blocks", None)
    if message.get("reasoning_content") or not isinstance(blocks, list):
        return message
    texts = [
        block["thinking"] for block in blocks if isinstance(block, dict) and isinstance(block.get("thinking"), str)
    ]
    return {**message, "reasoning_content": "".join(texts)} if texts else message


def _observation(event: dict[str, Json], index: int, reading: Reading) -> Iterator[Utterance]:
    metadata = event.get("tool_call_metadata")
    text = read_text(event.get("content"), "an observation", index)
    if isinstance(metadata, dict):
        yield Utterance(index, "tool", text, reply_to=read_call_id(metadata.get("tool_call_id"), index))
    elif event.get("observation") == "error":
        yield Utterance(index, "user", text)
    else:
        reading.counts[f"read/event-dropped/{kind_of(event)}"] += 1


def _message_event(event: dict[str, Json], index: int, reading: Reading) -> Iterator[Utterance]:
    message = event.get("llm_message")
    if not isinstance(message, dict):
        raise Rejected("message-not-object", f"llm_message is {quote(message)}; expected an object", at=index)
    keys = ("role", "content", "reasoning_content", "thinking_blocks")
    said = read_message(_with_thinking({key: message[key] for key in keys if message.get(key)}), index, MANNER, reading)
    more = read_content(event.get("extended_content"), index, reading.counts).text
    said.text = said.text + more
    yield said


def _action_event(event: dict[str, Json], index: int, reading: Reading) -> Iterator[Utterance]:
    said = Utterance(index, "assistant", read_content(event.get("thought"), index, reading.counts).text)
    thought = {key: event[key] for key in ("reasoning_content", "thinking_blocks") if event.get(key)}
    recorded = read_text(_with_thinking(thought).get("reasoning_content"), "reasoning_content", index)
    settle_answer(said, recorded, reading)
    said.calls = read_calls(event.get("tool_call"), index, reading.counts)
    yield said


def _observation_event(event: dict[str, Json], index: int, reading: Reading) -> Iterator[Utterance]:
    shown = event.get("observation")
    shown = shown if isinstance(shown, dict) else {"content": shown}
    content = shown["content"] if shown.get("content") is not None else shown.get("output")
    text = read_content(content, index, reading.counts).text
    text += read_content(event.get("extended_content"), index, reading.counts).text
    yield Utterance(index, "tool", text, reply_to=read_call_id(event.get("tool_call_id"), index))


def _error_event(event: dict[str, Json], index: int, reading: Reading) -> Iterator[Utterance]:
    text = read_text(event.get("error", event.get("rejection_reason")), "an error", index)
    yield Utterance(index, "tool", text, reply_to=read_call_id(event.get("tool_call_id"), index))


def _summary_event(event: dict[str, Json], index: int, reading: Reading) -> Iterator[Utterance]:
    yield Utterance(index, "user", read_text(event.get("summary"), "a summary", index))


KINDS: dict[str, Callable[[dict[str, Json], int, Reading], Iterator[Utterance]]] = {
    "MessageEvent": _message_event,
    "ActionEvent": _action_event,
    "ObservationEvent": _observation_event,
    "AgentErrorEvent": _error_event,
    "UserRejectObservation": _error_event,
    "CondensationSummaryEvent": _summary_event,
}
"""Kind of the SDK's events → what they say."""


def _completion(record: dict[str, Json], reading: Reading) -> Conversation:
    """One logged completion: its response is the answer, and what stood before it is context."""
    answer = _recorded_answer({"tool_call_metadata": {"model_response": record["response"]}})
    if answer is None:
        raise Rejected("no-assistant-turn", "the logged response holds no message")
    arguments = record.get("kwargs")
    tools = record.get("tools") or (arguments.get("tools") if isinstance(arguments, dict) else None)
    chat = {"messages": record["messages"], "tools": tools, "id": record.get("id")}
    fields, messages = open_chat(chat, reading, "messages")
    utterances = [read_message(message, index, MANNER, reading) for index, message in enumerate([*messages, answer])]
    for utterance in utterances[:-1]:
        if utterance.role in ("assistant", "tool"):
            utterance.weight = 0.0
            reading.counts["read/prompt-untrained"] += 1
    Fields(dict.fromkeys(record), {}).count_left(reading.counts, "column")
    return read_row(fields, utterances, reading)
