"""Which dialect a file is in, told by the keys that only one dialect has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnmill.conversation import Json
from turnmill.dialects import Mapping
from turnmill.dialects.canonical import NAME, is_canonical
from turnmill.dialects.openhands_threads import is_event
from turnmill.dialects.prompt_response import PROMPTS, RESPONSES
from turnmill.dialects.sessions import thread_dialect
from turnmill.dialects.terminus import find_reply
from turnmill.dialects.wire import is_wire
from turnmill.errors import UsageError, quote

SHAREGPT_KEYS = frozenset({"from", "value"})
SHAREGPT_SPEAKERS = frozenset({"human", "gpt", "chatgpt", "function_call", "tool_call", "observation", "tool_response"})
OPENAI_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call", "reasoning_content"})
OPENAI_SPEAKERS = frozenset({"tool", "function", "developer"})
ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
HARMONY_CHANNELS = frozenset({"analysis", "commentary", "final"})

TEXT = "text"
PLAIN, SHORT = "plain", "short"
"""Evidence of a common list of messages, and of an instruction with a response: other evidence goes before it."""

TRANSCRIPT = re.compile(
    r"<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|(?:user|assistant)\|>|\[/INST\]"
    r"|(?:^|\n)#{2,3} ?(?:Human|Assistant|Instruction|Response):|(?:^|\n\n)(?:Human|Assistant|USER|ASSISTANT): "
)
"""How a chat that somebody wrote into one text looks."""

SWE_AGENT = "swe-agent"
TERMINUS, JSON_REPLIES = "terminus", "answers that are JSON with commands"
ANSWERERS = frozenset({"assistant", "gpt"})

MESSAGE_COLUMNS = frozenset({"role", "from", "speaker", "parent_id"})
"""A row that has one of these is a message of a chat, not a text."""

PREFERENCE_COLUMNS = (
    ("chosen", "rejected"),
    ("chosen_messages", "rejected_messages"),
    ("conversation_a", "conversation_b"),
    *((f"response_{one}", f"response_{other}") for one, other in ("01", "12", "ab", "jk")),
)

NEXT_STEP = "turnmill list dialects"


class Detected(NamedTuple):
    """A dialect, and what it was told by."""

    name: str
    why: str


def detect(sample: Sequence[dict[str, Json]], mapping: Mapping) -> Detected:
    """The dialect of a file.

    Args:
        sample: some of its records.
        mapping: the source's column names.

    Raises:
        UsageError: preference data, keys of two dialects, or keys of none.
    """
    sample = [record for record in sample if isinstance(record, dict)]
    _refuse_preferences([record for record in sample if not is_canonical(record)])
    column = mapping.columns.get("text", "text")
    evidence: Counter[tuple[str, str]] = Counter()
    for record in sample:
        evidence.update(sorted(set(_evidence(record, mapping))))
    found = _by_dialect(evidence, len(sample))
    if len(found) > 1:
        seen = "; ".join(f"{name}: {why}" for name, why in found.items())
        raise UsageError(f"the records have keys of two dialects ({seen}); name one: --dialect", next_step=NEXT_STEP)
    if not found:
        columns = sorted({str(column) for record in sample for column in record})
        message = f"no dialect has these columns: {quote(', '.join(columns))}"
        expected = "expected messages, conversations, instruction and output, prompt and response, or text"
        raise UsageError(f"{message}; {expected}", next_step=NEXT_STEP)
    name, why = next(iter(found.items()))
    if name == TEXT:
        _refuse_transcripts(sample, column)
    return Detected(name, why)


def _by_dialect(evidence: Counter[tuple[str, str]], rows: int) -> dict[str, str]:
    """Dialect → its most frequent key. A plain list of messages is openai's unless another list dialect claims it."""
    found: dict[str, str] = {}
    terminus = evidence[TERMINUS, JSON_REPLIES]
    if 2 * terminus >= rows and terminus:  # the list of messages around the replies tells nothing more
        return {TERMINUS: f"{JSON_REPLIES} in {terminus} of {rows} rows"}
    for (name, reason), count in evidence.most_common():
        if name not in (PLAIN, SHORT, TERMINUS):
            found.setdefault(name, f"{reason} in {count} of {rows} rows")
    if "harmony" in found and not any(name == "openai" and "key" in reason for name, reason in evidence):
        found.pop("openai", None)  # tools and developers speak in both
    for (name, reason), count in evidence.most_common():
        if name == SHORT and "alpaca" not in found:
            found.setdefault("prompt-response", f"{reason} in {count} of {rows} rows")
        if name == PLAIN and not found.keys() & {"sharegpt", "anthropic", "harmony"}:
            found.setdefault("openai", f"{reason} in {count} of {rows} rows")
    return found


def _evidence(record: dict[str, Json], mapping: Mapping) -> Iterator[tuple[str, str]]:
    if is_canonical(record):  # its channels, speakers and parts say nothing more
        yield NAME, "chat_template_kwargs as text beside content in parts"
        return
    thread = thread_dialect(record)
    if thread is not None:
        yield thread, "events of a session"
        return
    trajectory = None if mapping.columns else _trajectory_evidence(record)
    if trajectory is not None:  # its history is no list of pairs, its messages say nothing more
        yield trajectory
        return
    listed = list(_list_evidence(record, mapping))
    yield from listed
    yield from _column_evidence(record, mapping, has_list=bool(listed))


def _trajectory_evidence(record: dict[str, Json]) -> tuple[str, str] | None:
    """A run of an agent that is one record, None for any other record."""
    history, response = record.get("history"), record.get("response")
    first = history[0] if isinstance(history, list) and history else None
    if isinstance(first, list) and first:
        first = first[0]
    if isinstance(first, dict):
        if is_event(first):
            return "openhands", "history of events"
        if "role" in first and (isinstance(record.get("trajectory"), list) or "message_type" in first):
            return SWE_AGENT, "history beside trajectory" if "trajectory" in record else "history with message_type"
    if str(record.get("trajectory_format")).startswith("mini-swe-agent"):
        return SWE_AGENT, "trajectory_format"
    if isinstance(record.get("messages"), list) and isinstance(response, dict) and "choices" in response:
        return "openhands", "messages beside response"
    return None


def _column_evidence(record: dict[str, Json], mapping: Mapping, *, has_list: bool) -> Iterator[tuple[str, str]]:
    """Columns of question and answer; beside a list of messages they mostly repeat it."""
    columns = mapping.columns
    there = {key for key, value in record.items() if value is not None}
    instruction, output = columns.get("instruction", "instruction"), columns.get("output", "output")
    if instruction in record and output in record:
        yield "alpaca", "instruction and output"
    elif {"instruction", "response"} <= there and there & {"input", "context"} and not has_list:
        yield "alpaca", "instruction, response and input or context"
    elif not has_list:
        prompts = {columns["prompt"]} if "prompt" in columns else set(PROMPTS)
        responses = {columns[key] for key in ("response", "calls", "history") if key in columns} or set(RESPONSES)
        pairs = [f"{p} and {r}" for p in sorted(prompts & there) for r in sorted(responses & there)]
        for pair in pairs[:1]:
            yield (SHORT if pair == "instruction and response" else "prompt-response"), pair
        if columns.get("history") in there:
            yield "prompt-response", columns["history"]
        if not pairs:
            yield from _text_evidence(record, mapping, sorted((prompts | responses) & there))


def _text_evidence(record: dict[str, Json], mapping: Mapping, half: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A text with nothing beside it that a chat is made of; beside half a chat it may be the other half."""
    column = mapping.columns.get("text", "text")
    is_named = "text" in mapping.columns
    if not isinstance(record.get(column), str) or is_wire(record[column]):
        return
    if not is_named and record.keys() & MESSAGE_COLUMNS:
        return
    yield TEXT, f"{column} beside {half[0]}" if half and not is_named else column
    if half and not is_named:
        yield "prompt-response", f"{half[0]} beside {column}"


def _refuse_transcripts(sample: Sequence[dict[str, Json]], column: str) -> None:
    """Refuse to take for raw texts what may be chats: trained on whole, their questions would be learned, too."""
    for record in sample:
        found = TRANSCRIPT.search(record[column]) if isinstance(record.get(column), str) else None
        if found is not None:
            what = f"{column} holds {quote(found[0].strip())}: a chat written into one text, or a text about one"
            advice = "every token of a raw text trains; if that is meant, name the dialect: --dialect text"
            raise UsageError(f"{what}; {advice}", next_step="--dialect text")


def _list_evidence(record: dict[str, Json], mapping: Mapping) -> Iterator[tuple[str, str]]:
    columns = mapping.columns
    mapped = columns.get("messages")
    if mapped is None and "conversations" in record:
        yield "sharegpt", "conversations"
        if _replies_in_json(record["conversations"]):
            yield TERMINUS, JSON_REPLIES
    for column in (mapped,) if mapped else ("messages", "conversation"):
        if column in record and columns.get("history") != column:
            if is_wire(record[column]):
                yield "harmony", f"wire text in {column}"
            else:
                yield PLAIN, column
                yield from _message_evidence(record[column], mapping)
    if mapped is None and is_wire(record.get("text")):
        yield "harmony", "wire text in text"
    if isinstance(record.get("system"), list):
        yield "anthropic", "system in blocks"
    tools = record.get(columns.get("tools", "tools"))
    if isinstance(tools, list) and any(isinstance(tool, dict) and tool.get("input_schema") for tool in tools):
        yield "anthropic", "tools with input_schema"


def _message_evidence(messages: Json, mapping: Mapping) -> Iterator[tuple[str, str]]:
    """Keys, speakers and blocks of the messages that only one dialect has; mapped ones tell nothing."""
    mapped_keys, mapped_speakers = set(mapping.tags.values()), set(mapping.roles)
    if not mapping.tags and _replies_in_json(messages):
        yield TERMINUS, JSON_REPLIES
    for message in messages if isinstance(messages, list) else ():
        if not isinstance(message, dict):
            continue
        keys = {key for key, value in message.items() if value is not None} - mapped_keys
        speaker = message.get("role") or message.get("from")
        folded = speaker.lower() if isinstance(speaker, str) and speaker not in mapped_speakers else ""
        for key in sorted(keys & SHAREGPT_KEYS):
            yield "sharegpt", f"message key {key!r}"
        for key in sorted(keys & OPENAI_KEYS):
            yield "openai", f"message key {key!r}"
        if folded in SHAREGPT_SPEAKERS:
            yield "sharegpt", f"speaker {folded!r}"
        if folded in OPENAI_SPEAKERS:
            yield "openai", f"speaker {folded!r}"
        yield from _form_evidence(message)


def _replies_in_json(messages: Json) -> bool:
    """Whether the first answer is a JSON object with commands, as the terminal agent Terminus gives."""
    for message in messages if isinstance(messages, list) else ():
        speaker = (message.get("role") or message.get("from")) if isinstance(message, dict) else None
        if isinstance(speaker, str) and speaker.lower() in ANSWERERS:
            text = message.get("content") or message.get("value")
            return isinstance(text, str) and '"commands"' in text and find_reply(text) is not None
    return False


def _form_evidence(message: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Anthropic's blocks, and Harmony's channels."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in ANTHROPIC_BLOCKS:
            yield "anthropic", f"blocks of type {part['type']!r}"
    channel = message.get("channel")
    if isinstance(channel, str) and channel in HARMONY_CHANNELS:
        yield "harmony", "message key 'channel'"


def _refuse_preferences(sample: Sequence[dict[str, Json]]) -> None:
    for record in sample:
        dialect = _answering_dialect(record)
        pair = next((pair for pair in PREFERENCE_COLUMNS if all(column in record for column in pair)), None)
        if pair is not None:
            kind = f"preference pairs (columns {' and '.join(pair)})"
        elif isinstance(record.get("label"), bool):
            kind = "KTO data (a true or false `label`)"
        else:
            continue
        message = f"these are {kind}, not answers to learn from"
        advice = f"to read the messages all the same, name the dialect: --dialect {dialect}"
        raise UsageError(f"{message}; {advice}", next_step=f"--dialect {dialect}")


def _answering_dialect(record: dict[str, Json]) -> str:
    if "conversations" in record:
        return "sharegpt"
    if "instruction" in record:
        return "alpaca"
    return "prompt-response" if "prompt" in record and record.keys() & set(RESPONSES) else "openai"
