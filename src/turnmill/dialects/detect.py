"""Which dialect a file is in, told by the keys that only one dialect has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnmill.conversation import Json
from turnmill.dialects import Mapping
from turnmill.errors import UsageError, quote

SHAREGPT_KEYS = frozenset({"from", "value"})
SHAREGPT_SPEAKERS = frozenset({"human", "gpt", "chatgpt", "function_call", "observation"})
OPENAI_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call", "reasoning_content"})
OPENAI_SPEAKERS = frozenset({"tool", "function", "developer"})

PREFERENCE_COLUMNS = (("chosen", "rejected"), ("chosen_messages", "rejected_messages"))

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
    _refuse_preferences(sample)
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
        raise UsageError(f"{message}; expected messages, conversations, or instruction and output", next_step=NEXT_STEP)
    return Detected(*next(iter(found.items())))


def _by_dialect(evidence: Counter[tuple[str, str]], rows: int) -> dict[str, str]:
    """Dialect → its most frequent key. A plain `messages` column is openai's unless another list dialect claims it."""
    found: dict[str, str] = {}
    for (name, reason), count in evidence.most_common():
        if name != "plain":
            found.setdefault(name, f"{reason} in {count} of {rows} rows")
    plain = evidence[("plain", "messages")]
    if plain and "sharegpt" not in found:
        found.setdefault("openai", f"messages in {plain} of {rows} rows")
    return found


def _evidence(record: dict[str, Json], mapping: Mapping) -> Iterator[tuple[str, str]]:
    columns = mapping.columns
    if columns.get("instruction", "instruction") in record and columns.get("output", "output") in record:
        yield "alpaca", "instruction and output"
    if "messages" in columns:
        if columns["messages"] in record:
            yield "plain", "messages"
            yield from _message_evidence(record[columns["messages"]], mapping)
        return
    if "conversations" in record:
        yield "sharegpt", "conversations"
    if "messages" in record:
        yield "plain", "messages"
        yield from _message_evidence(record["messages"], mapping)


def _message_evidence(messages: Json, mapping: Mapping) -> Iterator[tuple[str, str]]:
    """Keys and speakers of the messages that only one dialect has; mapped ones tell nothing."""
    mapped_keys, mapped_speakers = set(mapping.tags.values()), set(mapping.roles)
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
    return "alpaca" if "instruction" in record else "openai"
