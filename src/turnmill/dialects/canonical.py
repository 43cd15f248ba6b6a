"""`turnmill`: canonical rows, as a prepared folder or a canonical Parquet file holds them, back into conversations."""

from __future__ import annotations

from typing import cast

from turnmill.contract.json_text import JsonFault, strict_json
from turnmill.conversation import Channel, Conversation, Json, Message, Role
from turnmill.dialects import Reading, dialect
from turnmill.dialects.fields import Fields, require_known
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.tools import read_template_kwargs, read_tools, settle_thinking
from turnmill.dialects.weights import read_weight
from turnmill.errors import Rejected, quote

NAME = "turnmill"
MADE_ANEW = ("id", "source", "source_file", "source_line", "row", "repairs")
"""Columns that every reading makes anew: the id, and where the row stands."""
MARKS = ("source_line", "recorded", "verbatim")
"""Columns that only a canonical row has; those that say nothing are null."""
ALWAYS_KEPT = ("source_train_turns",)
"""Annotations that are kept without being asked for."""
CHANNELS = (None, "analysis", "commentary", "final", "text")


def is_canonical(record: dict[str, Json]) -> bool:
    """Whether a record looks like a row that turnmill wrote: template arguments as text, content in parts, a mark."""
    messages = record.get("messages")
    if not isinstance(record.get("chat_template_kwargs"), str) or not isinstance(messages, list) or not messages:
        return False
    return any(mark in record for mark in MARKS) and all(_is_canonical_message(message) for message in messages)


def _is_canonical_message(message: Json) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    return isinstance(content, list) and bool(content) and all(_is_text_part(part) for part in content)


def _is_text_part(part: Json) -> bool:
    return (
        isinstance(part, dict)
        and part.keys() == {"type", "text"}
        and part["type"] == "text"
        and isinstance(part["text"], str)
    )


@dialect(NAME)
def read_canonical(record: dict[str, Json], reading: Reading) -> Conversation:
    """Rows of a prepared folder's `conversations`: messages as they were checked, weights and recorded indexes beside.

    Raises:
        Rejected: the row is not as turnmill writes it.
        UnknownName: the source maps columns or tags; a canonical row has nothing to map.
    """
    require_known("column", reading.mapping.columns, ())
    require_known("tag", reading.mapping.tags, ())
    fields = Fields(record, {})
    listed = _listed(fields.take_as_is("messages"))
    weights = _beside(fields, "weights", len(listed)) or [None] * len(listed)
    recorded = _beside(fields, "recorded", len(listed)) or list(range(len(listed)))
    messages = tuple(
        _message(entry, weight, index, reading) for entry, weight, index in zip(listed, weights, recorded, strict=True)
    )
    kwargs = read_template_kwargs(fields.take_as_is("chat_template_kwargs"))
    tools = read_tools([("chat_template_kwargs.tools", kwargs.pop("tools", None))], reading.counts)
    settle_thinking(kwargs, messages, reading.counts)
    source_id, verbatim = fields.take_as_is("source_id"), _verbatim(fields.take_as_is("verbatim"))
    if source_id is not None and not isinstance(source_id, str):
        raise Rejected("id-not-text", f"source_id is {quote(source_id)}; expected text")
    for column in MADE_ANEW:
        fields.rest.pop(column, None)
    meta = _annotations(fields, reading)
    fields.count_left(reading.counts, "column")
    return Conversation(messages, tools, kwargs, source_id=source_id, verbatim=verbatim, meta=meta)


def _listed(value: Json) -> list[Json]:
    if value is None or value == []:
        raise Rejected("no-messages", "the row has no messages")
    if not isinstance(value, list):
        raise Rejected("messages-not-list", f"the messages are {quote(value)}; expected a list")
    return value


def _beside(fields: Fields, column: str, count: int) -> list[Json] | None:
    """A column with one value for each message, None where it is null."""
    values = fields.take_as_is(column)
    if values is None:
        return None
    if not isinstance(values, list) or len(values) != count:
        raise Rejected("canonical-row-malformed", f"{column} is {quote(values)}; expected {count} values")
    return values


def _message(entry: Json, weight: Json, index: Json, reading: Reading) -> Message:
    if type(index) is not int:
        raise Rejected("canonical-row-malformed", f"recorded holds {quote(index)}; expected whole numbers")
    at = index if index >= 0 else None
    if not isinstance(entry, dict):
        raise Rejected("message-not-object", f"a message is {quote(entry)}; expected an object", at=at)
    role, channel = entry.get("role"), entry.get("channel")
    if not isinstance(role, str):
        raise Rejected("no-speaker", f"the role of a message is {quote(role)}; expected text", at=at)
    if channel not in CHANNELS:
        raise Rejected("channel-invalid", f"a message is on the channel {quote(channel)}", at=at)
    said = Utterance(index, cast(Role, role), _text(entry.get("content"), at))
    return Message(
        role=said.role,
        text=said.text,
        channel=cast(Channel | None, channel),
        name=_text_or_none(entry, "name", at),
        recipient=_text_or_none(entry, "recipient", at),
        weight=read_weight(Fields({"weight": weight}, {}), said, fractional=reading.fractional, counts=reading.counts),
        recorded=index,
    )


def _text(content: Json, at: int | None) -> str:
    """The text of a message's one part."""
    if not isinstance(content, list) or len(content) != 1 or not _is_text_part(content[0]):
        message = f"content is {quote(content)}; expected one part of type and text"
        raise Rejected("canonical-row-malformed", message, at=at)
    text: str = content[0]["text"]
    return text


def _text_or_none(entry: dict[str, Json], key: str, at: int | None) -> str | None:
    value = entry.get(key)
    if value is None or isinstance(value, str):
        return value
    raise Rejected("name-not-text", f"{key} of a message is {quote(value)}; expected text", at=at)


def _verbatim(text: Json) -> dict[int, str]:
    """Recorded contents by recorded index."""
    value = {} if text is None else _decoded("verbatim", text)
    if not isinstance(value, dict) or not all(isinstance(said, str) for said in value.values()):
        raise Rejected("canonical-row-malformed", f"verbatim is {quote(value)}; expected an object of texts")
    try:
        return {int(index): said for index, said in value.items()}
    except ValueError:
        message = f"verbatim has the keys {quote(list(value))}; expected indexes of messages"
        raise Rejected("canonical-row-malformed", message) from None


def _annotations(fields: Fields, reading: Reading) -> dict[str, Json]:
    names = dict.fromkeys((*reading.kept(fields.rest), *ALWAYS_KEPT))
    found = {name: fields.rest.pop(name) for name in names if fields.rest.get(name) is not None}
    return {name: _decoded(name, text) for name, text in found.items()}


def _decoded(column: str, text: Json) -> Json:
    if not isinstance(text, str):
        raise Rejected("canonical-row-malformed", f"{column} is {quote(text)}; expected JSON text")
    try:
        return strict_json(text)
    except JsonFault as fault:
        raise Rejected("canonical-row-malformed", f"{column}: {fault}; expected JSON text") from None
