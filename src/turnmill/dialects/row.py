"""A whole record → a conversation: the columns that every dialect shares, around the dialect's own messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from turnmill.contract.json_text import JsonFault, strict_json
from turnmill.conversation import NOT_RECORDED, Conversation, Json, Message
from turnmill.dialects import Reading
from turnmill.dialects.assemble import assemble
from turnmill.dialects.content import read_text
from turnmill.dialects.fields import Fields, require_known
from turnmill.dialects.plain import plain_messages
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.tools import read_template_kwargs, read_tools, settle_thinking
from turnmill.dialects.turns import MESSAGE_KEYS, Manner, read_message
from turnmill.dialects.weights import apply_train_turns
from turnmill.errors import Rejected, quote

ID_COLUMNS = ("id", "conversation_id", "uuid")
"""The first of these that is there is the row's id in its source."""

TOOL_COLUMNS = ("tools", "functions", "tool_defs")
SHARED_COLUMNS = ("id", "system", *TOOL_COLUMNS, "chat_template_kwargs", "train_turns")
"""Our names of the columns that every dialect has."""

CHAT_COLUMNS = ("messages", *SHARED_COLUMNS)
LIST_COLUMNS = ("messages", "conversations", "conversation")

MEDIA_COLUMNS = ("image", "images", "audio", "audios", "video", "videos")
"""Columns that hold what the texts only point at."""


Assembly = Callable[[list[Utterance], Counter[str]], tuple[Message, ...]]
"""Utterances → messages; takes the counts."""


def read_chat(record: dict[str, Json], reading: Reading, manner: Manner, *columns: str) -> Conversation:
    """The conversation of a record that holds a list of messages.

    Args:
        record: the record.
        reading: the source's mapping, and where things are counted.
        manner: how its messages name speakers and fields.
        columns: where the list stands unless `columns: {messages: …}` says so, first wins.

    Raises:
        Rejected: what the record cannot be read as.
    """
    fields, messages = open_chat(record, reading, *columns)
    if not fields.rest and (plain := plain_messages(messages, manner, reading)):
        return Conversation(plain)
    utterances = [read_message(message, index, manner, reading) for index, message in enumerate(messages)]
    return read_row(fields, utterances, reading)


def open_chat(record: dict[str, Json], reading: Reading, *columns: str) -> tuple[Fields, list[Json]]:
    """The fields of a record, and its list of messages taken out of them.

    Raises:
        Rejected: `no-messages`, `messages-not-list` or `ambiguous-columns`.
        UnknownName: the mapping names a column or key that a chat has not.
    """
    require_known("column", reading.mapping.columns, CHAT_COLUMNS)
    require_known("tag", reading.mapping.tags, MESSAGE_KEYS)
    lists = [column for column in LIST_COLUMNS if record.get(column)]
    if "messages" not in reading.mapping.columns and len(lists) > 1:
        message = f"the row has both {' and '.join(lists)}; expected one, or `columns: {{messages: …}}`"
        raise Rejected("ambiguous-columns", message)
    fields = Fields(record, reading.mapping.columns)
    return fields, _message_list(_listed(fields, reading, columns), reading)


def _listed(fields: Fields, reading: Reading, columns: tuple[str, ...]) -> Json:
    mapped = reading.mapping.columns.get("messages")
    for column in (mapped,) if mapped else columns:
        value = fields.rest.pop(column, None)
        if value:
            return value
    return None


def _message_list(value: Json, reading: Reading) -> list[Json]:
    if isinstance(value, str):
        try:
            value = strict_json(value)
        except JsonFault as fault:
            raise Rejected("messages-not-list", f"the messages are text: {fault}") from None
        reading.counts["read/messages-json-text"] += 1
    if value is None or value == []:
        raise Rejected("no-messages", "the row has no messages")
    if not isinstance(value, list):
        raise Rejected("messages-not-list", f"the messages are {quote(value)}; expected a list")
    return value


def read_row(
    fields: Fields,
    utterances: list[Utterance],
    reading: Reading,
    *,
    system: str | None = None,
    assembly: Assembly = assemble,
) -> Conversation:
    """The conversation of a record whose messages are read and whose other columns are not.

    Args:
        fields: the record's columns that nobody took yet.
        utterances: its messages.
        reading: where things are counted, and which columns are kept.
        system: the system text outside the messages; None = in the column `system`.
        assembly: how the utterances become messages.

    Raises:
        Rejected: what the columns or the order of the utterances cannot be read as.
    """
    refuse_media(fields)
    kwargs = read_template_kwargs(fields.take("chat_template_kwargs"))
    places = [(name, fields.take(name)) for name in TOOL_COLUMNS]
    places.append(("chat_template_kwargs.tools", kwargs.pop("tools", None)))
    places += [(f"message {said.index}", said.tools) for said in utterances if said.tools is not None]
    tools = read_tools(places, reading.counts)
    meta = _train_turns(fields, utterances)
    spoken = [said for said in utterances if said.text or said.tools is None or said.role == "assistant"]
    outside = read_text(fields.take_as_is("system"), "system") if system is None else system
    messages = (*_system(outside, spoken, reading), *assembly(spoken, reading.counts))
    if any("\0" in message.text for message in messages):
        reading.counts["read/nul-in-text"] += 1
    settle_thinking(kwargs, messages, reading.counts)
    source_id = read_source_id(fields)
    meta |= read_kept_columns(fields, reading)
    fields.count_left(reading.counts, "column")
    verbatim = {said.index: said.verbatim for said in utterances if said.verbatim is not None}
    return Conversation(messages, tools, kwargs, source_id=source_id, verbatim=verbatim, meta=meta)


def refuse_media(fields: Fields) -> None:
    """Refuse a record with columns of pictures, sounds or films.

    Raises:
        Rejected: `non-text-content`.
    """
    for column in MEDIA_COLUMNS:
        value = fields.rest.get(column)  # text may name a container's image, a number count them
        if isinstance(value, (list, dict, bytes)) and value:
            raise Rejected("non-text-content", f"the row has a column {column!r}; turnmill reads text only")


def _train_turns(fields: Fields, utterances: list[Utterance]) -> dict[str, Json]:
    turns = fields.take_as_is("train_turns")
    if turns is None:
        return {}
    apply_train_turns(turns, utterances)
    return {"source_train_turns": turns}


def _system(text: str, utterances: Iterable[Utterance], reading: Reading) -> tuple[Message, ...]:
    """The system text that stands outside the message list; the same text as first message is the same system."""
    if not text.strip():
        return ()
    first = next(iter(utterances), None)
    if first is not None and first.role == "system" and first.text == text:
        reading.counts["read/system-recorded-twice"] += 1
        return ()
    return (Message("system", text, recorded=NOT_RECORDED),)


def read_source_id(fields: Fields) -> str | None:
    """The row's id in its source.

    Raises:
        Rejected: `id-not-text`.
    """
    value = fields.take(*ID_COLUMNS)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise Rejected("id-not-text", f"the row's id is {quote(value)}; expected text or a whole number")


def read_kept_columns(fields: Fields, reading: Reading) -> dict[str, Json]:
    """The undeclared columns that are kept, taken out of the fields."""
    return {column: fields.rest.pop(column) for column in reading.kept(fields.rest)}
