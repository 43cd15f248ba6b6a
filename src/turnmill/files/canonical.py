"""The canonical Parquet of checked rows: one schema, whatever the rows hold.

Arguments, tools, template arguments and annotations are JSON text, so Arrow can neither unify nor null-fill them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any

from turnmill.conversation import (
    COLUMNS,
    PROVENANCE,
    Checked,
    Conversation,
    Json,
    Message,
    recorded_json,
    template_kwargs,
)

if TYPE_CHECKING:
    import pyarrow as pa


_COLUMNS = frozenset(COLUMNS)


@cache
def schema(keep_columns: tuple[str, ...] = ()) -> pa.Schema:
    """The schema, with one JSON text column for each annotation."""
    import pyarrow as pa

    part = pa.struct([pa.field("type", pa.string(), nullable=False), pa.field("text", pa.string(), nullable=False)])
    message = pa.struct(
        [
            pa.field("role", pa.string(), nullable=False),
            pa.field("name", pa.string()),
            pa.field("channel", pa.string()),
            pa.field("recipient", pa.string()),
            pa.field("content", pa.list_(part), nullable=False),
        ]
    )
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("messages", pa.list_(message), nullable=False),
            pa.field("source", pa.string()),
            pa.field("source_id", pa.string()),
            pa.field("chat_template_kwargs", pa.string()),
            pa.field("weights", pa.list_(pa.float64())),
            pa.field("recorded", pa.list_(pa.int32())),
            pa.field("verbatim", pa.string()),
            pa.field("source_file", pa.string()),
            pa.field("source_line", pa.int64()),
            pa.field("row", pa.int64()),
            pa.field("repairs", pa.list_(pa.string())),
            *(pa.field(name, pa.string()) for name in keep_columns),
        ]
    )


def to_table(rows: Iterable[Checked], keep_columns: Sequence[str] = ()) -> pa.Table:
    """The rows as a table of the canonical schema.

    Args:
        rows: checked conversations.
        keep_columns: annotations that become columns; null where a row has none. Other annotations are left out.
    """
    import pyarrow as pa

    whole = schema(tuple(keep_columns))
    conversations = list(rows)
    stored = [_without_messages(row, keep_columns) for row in conversations]
    columns = {
        field.name: pa.array([row[field.name] for row in stored], type=field.type)
        for field in whole
        if field.name != "messages"
    }
    columns["messages"] = _message_column([row.messages for row in conversations], whole.field("messages").type)
    return pa.Table.from_arrays([columns[name] for name in whole.names], schema=whole)


def _message_column(rows: Sequence[Sequence[Message]], kind: pa.ListType) -> pa.ListArray:
    """The messages of the rows: field by field, which is faster than row by row."""
    import pyarrow as pa

    flat = [message for messages in rows for message in messages]
    content = kind.value_type.field("content").type
    part = content.value_type
    texts = [pa.array(["text"] * len(flat), pa.string()), pa.array([message.text for message in flat], pa.string())]
    parts = pa.StructArray.from_arrays(texts, fields=list(part))
    fields = {
        name: pa.array([getattr(message, name) for message in flat], pa.string())
        for name in ("role", "name", "channel", "recipient")
    }
    ends = pa.array(range(len(flat) + 1), pa.int32())
    fields["content"] = pa.ListArray.from_arrays(ends, parts, type=content)
    struct = kind.value_type
    messages = pa.StructArray.from_arrays([fields[field.name] for field in struct], fields=list(struct))
    return pa.ListArray.from_arrays(pa.array([0, *accumulate(map(len, rows))], pa.int32()), messages, type=kind)


def to_row(conversation: Conversation, keep_columns: Sequence[str] = ()) -> dict[str, Json]:
    """One row of the canonical table as a JSON object."""
    stored = {"messages": [_stored_message(message) for message in conversation.messages]}
    return {"id": None} | stored | _without_messages(conversation, keep_columns)


def _without_messages(conversation: Conversation, keep_columns: Sequence[str]) -> dict[str, Json]:
    messages, meta = conversation.messages, conversation.meta
    weights = [message.weight for message in messages]
    recorded = [message.recorded for message in messages]
    verbatim = {str(index): text for index, text in conversation.verbatim.items()}
    return {
        "id": conversation.id,
        "source": conversation.source,
        "source_id": conversation.source_id,
        "chat_template_kwargs": recorded_json(template_kwargs(conversation)),
        "weights": None if all(weight is None for weight in weights) else weights,
        "recorded": None if recorded == list(range(len(messages))) else recorded,
        "verbatim": recorded_json(verbatim) if verbatim else None,
        "source_file": meta.get("source_file"),
        "source_line": meta.get("source_line"),
        "row": meta.get("row"),
        "repairs": meta.get("repairs", []),
        **{name: recorded_json(meta[name]) if name in meta else None for name in keep_columns},
    }


def _stored_message(message: Message) -> dict[str, Json]:
    return {
        "role": message.role,
        "name": message.name,
        "channel": message.channel,
        "recipient": message.recipient,
        "content": [{"type": "text", "text": message.text}],
    }


def readmit(table: pa.Table | pa.RecordBatch) -> list[Checked]:
    """The checked rows that `to_table` stored: the only maker of `Checked` beside the check itself.

    Only for tables that a published folder lists; nothing is checked again. A recorded boolean `enable_thinking` is
    not given back: a stored one is derived.
    """
    names = [name for name in table.schema.names if name != "messages"]
    values = zip(*[table.column(name).to_pylist() for name in names], strict=True)
    stored = stored_messages(table.column("messages"))
    return [_read(dict(zip(names, row, strict=True)), messages) for row, messages in zip(values, stored, strict=True)]


def stored_messages(column: pa.ChunkedArray | pa.Array) -> Iterator[list[tuple[Any, ...]]]:
    """Of each row the role, text, channel, name and recipient of every message: column by column, which is faster."""
    import pyarrow as pa

    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        messages = chunk.flatten()
        texts = messages.field("content").flatten().field("text")  # a message's content is one part
        fields = [texts, *map(messages.field, ("channel", "name", "recipient"))]
        flat = list(zip(*[field.to_pylist() for field in (messages.field("role"), *fields)], strict=True))
        ends = chunk.value_lengths().to_pylist()
        start = 0
        for length in ends:
            yield flat[start : start + length]
            start += length


def text_sizes(table: pa.Table) -> list[int]:
    """Bytes of each row's texts, those of all its messages, and of its template arguments."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes: list[int] = []
    for batch in table.to_batches():
        messages = batch.column("messages")
        texts = messages.flatten().field("content").flatten().field("text")
        bytes_before = pa.array([0, *accumulate(pc.binary_length(texts).to_pylist())], pa.int64())
        borders = pa.array([0, *accumulate(messages.value_lengths().to_pylist())], pa.int64())
        of_messages = pc.pairwise_diff(bytes_before.take(borders))[1:]
        sizes += pc.add(of_messages, pc.binary_length(batch.column("chat_template_kwargs"))).to_pylist()
    return sizes


def from_row(row: dict[str, Any]) -> Checked:
    """One row of the canonical table as a checked conversation."""
    stored = row["messages"]
    texts = [message["content"][0]["text"] for message in stored]
    fields = ("channel", "name", "recipient")
    messages = [(one["role"], text, *(one[field] for field in fields)) for one, text in zip(stored, texts, strict=True)]
    return _read(row, messages)


def _read(row: dict[str, Any], stored: Sequence[tuple[Any, ...]]) -> Checked:
    """A row whose messages are given as (role, text, channel, name, recipient)."""
    kwargs: dict[str, Json] = json.loads(row["chat_template_kwargs"])
    tools = kwargs.pop("tools", [])
    if isinstance(kwargs.get("enable_thinking"), bool):
        del kwargs["enable_thinking"]
    annotations = {name: json.loads(text) for name, text in row.items() if name not in _COLUMNS and text is not None}
    conversation = Conversation(
        messages=_messages(row, stored),
        tools=tuple(tools),
        template_kwargs=kwargs,
        source=row["source"],
        source_id=row["source_id"],
        verbatim=_verbatim(row["verbatim"]) if row["verbatim"] else {},
        meta={key: row[key] for key in PROVENANCE if row[key] not in (None, [])} | annotations,
    )
    return Checked(conversation)


def _verbatim(stored: str) -> dict[int, str]:
    return {int(index): text for index, text in json.loads(stored).items()}


def _messages(row: dict[str, Any], stored: Sequence[tuple[Any, ...]]) -> tuple[Message, ...]:
    weights = row["weights"] or repeat(None, len(stored))
    recorded = row["recorded"] or range(len(stored))
    return tuple(
        Message(*fields, weight, index)  # type: ignore[call-arg]  # five fields, which a tuple's type does not say
        for fields, weight, index in zip(stored, weights, recorded, strict=True)
    )
