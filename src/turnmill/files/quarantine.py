"""Rows that left the line, stored so that they can be read, counted, mended and replayed."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from turnmill.conversation import Conversation, recorded_json
from turnmill.errors import Rejected
from turnmill.files.canonical import to_row
from turnmill.files.record import Record
from turnmill.files.tables import batches

if TYPE_CHECKING:
    import pyarrow as pa

LeftClass = Literal["rejected", "stalled", "filtered", "duplicate", "contaminated", "unselected"]
"""Why a row left, in the classes that a run counts."""


class Left(msgspec.Struct, frozen=True):
    """One row that left."""

    class_: LeftClass
    source: str
    source_file: str
    source_line: int
    row: int
    stage: str
    """The verb at which it left."""
    code: str
    message: str
    at: int | None
    """Index of the offending message in the recorded list."""
    record: str
    """The row itself: the record's text, base64 where that is not UTF-8, the canonical row's JSON behind check."""
    record_encoding: Literal["text", "base64"]
    config: str
    """Fingerprint of the step that let it go."""

    @property
    def raw(self) -> bytes:
        """The row's bytes."""
        return base64.b64decode(self.record) if self.record_encoding == "base64" else self.record.encode("utf-8")


def from_record(record: Record, fault: Rejected, *, stage: str, config: str, class_: LeftClass = "rejected") -> Left:
    """A record that left before it was a checked conversation."""
    text, encoding = _as_text(record.raw)
    return Left(
        class_=class_,
        source=record.source,
        source_file=record.source_file,
        source_line=record.source_line,
        row=record.row,
        stage=stage,
        code=fault.code,
        message=_encodable(fault.message),
        at=fault.at,
        record=text,
        record_encoding=encoding,
        config=config,
    )


def from_conversation(
    conversation: Conversation, fault: Rejected, *, stage: str, config: str, class_: LeftClass = "rejected"
) -> Left:
    """A checked conversation that left at a later step."""
    meta = conversation.meta
    return Left(
        class_=class_,
        source=conversation.source,
        source_file=meta.get("source_file", ""),
        source_line=meta.get("source_line", 0),
        row=meta.get("row", -1),
        stage=stage,
        code=fault.code,
        message=_encodable(fault.message),
        at=fault.at,
        record=recorded_json(to_row(conversation)),
        record_encoding="text",
        config=config,
    )


@cache
def schema() -> pa.Schema:
    """The schema of quarantine and duplicates."""
    import pyarrow as pa

    numbers = {"source_line", "row", "at"}
    names = ["class", *Left.__struct_fields__[1:]]
    return pa.schema([pa.field(n, pa.int64() if n in numbers else pa.string(), nullable=n == "at") for n in names])


def to_table(rows: Iterable[Left]) -> pa.Table:
    """The rows as a table."""
    import pyarrow as pa

    stored = [{name.removesuffix("_"): value for name, value in msgspec.structs.asdict(row).items()} for row in rows]
    return pa.Table.from_pylist(stored, schema=schema())


def from_table(table: pa.Table | pa.RecordBatch) -> Iterator[Left]:
    """The rows of a table; further columns (a duplicate's winner) are left out."""
    for values in table.select(schema().names).to_pylist():
        yield Left(class_=values.pop("class"), **values)


def iterate(files: Iterable[Path]) -> Iterator[Left]:
    """All rows of some files of quarantine or duplicates."""
    for path in files:
        for batch in batches(path):
            yield from from_table(batch)


def _as_text(raw: bytes) -> tuple[str, Literal["text", "base64"]]:
    try:
        return raw.decode("utf-8"), "text"
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode("ascii"), "base64"


def _encodable(message: str) -> str:
    """The message with lone surrogates written out: no file holds them."""
    return message.encode("utf-8", "backslashreplace").decode("utf-8")
