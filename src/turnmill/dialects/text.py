"""Raw text: a document a row, trained on as it stands, without a template."""

from __future__ import annotations

from turnmill.conversation import Conversation, Json, Message
from turnmill.dialects import Reading, dialect, writer
from turnmill.dialects.fields import Fields, require_known
from turnmill.dialects.row import read_kept_columns, read_source_id, refuse_media
from turnmill.errors import Rejected, quote

NAME = "text"
COLUMNS = ("text", "id")


@dialect(NAME)
def read_text_row(record: dict[str, Json], reading: Reading) -> Conversation:
    """Raw texts in the column `text`: no template, every token trains, long ones in several examples.

    Raises:
        Rejected: `no-messages` without a text, `non-string-content` where it is something else.
        UnknownName: the source maps a column that a text row has not, or keys of messages.
    """
    require_known("column", reading.mapping.columns, COLUMNS)
    require_known("tag", reading.mapping.tags, ())
    fields = Fields(record, reading.mapping.columns)
    refuse_media(fields)
    text = fields.take_as_is("text")
    if text is None:
        raise Rejected("no-messages", f"the row has no column {fields.names.get('text', 'text')!r}")
    if not isinstance(text, str):
        raise Rejected("non-string-content", f"the text is {quote(text)}; expected one text", at=0)
    if "\0" in text:
        reading.counts["read/nul-in-text"] += 1
    source_id = read_source_id(fields)
    meta = read_kept_columns(fields, reading)
    fields.count_left(reading.counts, "column")
    return Conversation((Message("assistant", text, "text", recorded=0),), source_id=source_id, meta=meta)


@writer(NAME)
def write_text_row(conversation: Conversation) -> dict[str, Json]:
    """Raw texts alone: a chat has no form here.

    Raises:
        Rejected: `dialect-cannot-say`.
    """
    if not conversation.is_raw_text:
        raise Rejected("dialect-cannot-say", f"{NAME} holds raw texts; this is a chat")
    given = {} if conversation.source_id is None else {"id": conversation.source_id}
    return {**given, "text": conversation.messages[0].text}
