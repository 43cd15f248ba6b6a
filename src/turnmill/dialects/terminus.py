"""Terminus, the terminal agent of a text protocol: its reply is a JSON object with a list of commands.

The harness reads that object and nothing else, so it alone is the reply, byte for byte as it was recorded; a think
block that leads is reasoning, and other prose around the object is dropped and counted. What the terminal showed comes
as turns of the user. A reply without such an object rejects its row: the harness could not act on it.
"""

from __future__ import annotations

import json

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Reading, dialect
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.row import open_chat, read_row
from turnmill.dialects.sharegpt import MANNER
from turnmill.dialects.traces import without_tail
from turnmill.dialects.turns import read_message
from turnmill.errors import Rejected, quote

MOST_TRIED = 1_000
"""Opening brackets of a reply at which its object is looked for."""

_decoder = json.JSONDecoder()


@dialect("terminus")
def terminus(record: dict[str, Json], reading: Reading) -> Conversation:
    """Terminus runs: messages whose answers are JSON objects with commands; prose around them is dropped."""
    fields, messages = open_chat(record, reading, "messages", "conversations", "conversation")
    utterances = [read_message(message, index, MANNER, reading) for index, message in enumerate(messages)]
    for utterance in utterances:
        if utterance.role == "assistant":
            _keep_reply(utterance, reading)
    return read_row(fields, without_tail(utterances, reading.counts), reading)


def _keep_reply(utterance: Utterance, reading: Reading) -> None:
    """Leave the JSON object of an answer.

    Raises:
        Rejected: `terminus-without-commands`.
    """
    if utterance.calls:
        raise Rejected("terminus-without-commands", "an answer calls tools; expected a JSON object", at=utterance.index)
    found = find_reply(utterance.text)
    if found is None:
        what = f"an answer holds no JSON object with a list of commands: {quote(utterance.text)}"
        raise Rejected("terminus-without-commands", what, at=utterance.index)
    whole, reply = utterance.text, utterance.text[found]
    if whole.strip() != reply:
        reading.counts["read/terminus-prose-dropped"] += 1
    if utterance.verbatim is not None:
        utterance.verbatim = utterance.verbatim.removesuffix(whole) + reply
    utterance.text = reply


def find_reply(text: str) -> slice | None:
    """Where the first JSON object with a list of `commands` stands in an answer; None where there is none."""
    start = text.find("{")
    for _ in range(MOST_TRIED):
        if start < 0:
            return None
        try:
            value, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            value, end = None, start
        if isinstance(value, dict) and isinstance(value.get("commands"), list):
            return slice(start, end)
        start = text.find("{", start + 1)
    return None
