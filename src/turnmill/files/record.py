"""One record of a file: its bytes, and either the object they hold or why they hold none."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.errors import Rejected

Layout = Literal["lines", "array", "concatenated", "parquet"]
"""How records lie in a file: a line each, elements of one array, objects one after another, rows of a Parquet."""

Compression = Literal["none", "gzip", "zstd"]


class Record(msgspec.Struct, frozen=True):
    """One record as it was read; exactly one of `value` and `fault` is not None."""

    source: str
    source_file: str
    """The file's name relative to its source's root."""
    source_line: int
    """1-based: the physical line, the element of an array, or the row of a Parquet file."""
    row: int
    """0-based over all records of all inputs, bad ones too."""
    raw: bytes
    """The record's own bytes without its line end; the first bytes of one that is too large; JSON text of a Parquet
    row, or of a conversation of a session."""
    value: dict[str, Json] | None = None
    fault: Rejected | None = None
    fatal: bool = False
    """The fault ends its file: what lies behind it cannot be read (a broken array, a truncated file)."""


class Piece(NamedTuple):
    """A record's bytes where they lie in a stream, not yet decoded."""

    line: int
    offset: int
    """Bytes before it in the stream."""
    raw: bytes
    fault: Rejected | None = None
    fatal: bool = False


class Shard(msgspec.Struct, frozen=True):
    """A stretch of one file that is read alone."""

    source: str
    path: str
    name: str
    """The file's name relative to its source's root."""
    layout: Layout
    compression: Compression
    file_bytes: int
    """Size of the whole file when it was planned."""
    file_version: str
    """Its version then: see `storage.FileState`."""
    file_sha256: str
    """Of its stored bytes then."""
    start: int
    """First byte (lines), first row group (Parquet); 0 where the file is one shard."""
    end: int
    """Behind the last byte or row group."""
    first_line: int
    first_row: int
    rows: int
    """Records in it, bad ones too."""
    session: str = ""
    """The session dialect that gathers its rows out of the events of the whole file; nothing where each record is
    a row."""

    @property
    def makes_rows(self) -> bool:
        """Whether its rows are made of what the file holds, and are not stretches of its bytes."""
        return self.layout == "parquet" or self.session != ""


class SourceFile(msgspec.Struct, frozen=True):
    """One file of a source, as it is stored."""

    path: str
    name: str
    bytes: int
    sha256: str
    """Of the stored bytes."""
    layout: Layout
    compression: Compression
    rows: int


class SourcePlan(msgspec.Struct, frozen=True):
    """What a source holds and how it is cut into shards."""

    source: str
    files: tuple[SourceFile, ...]
    shards: tuple[Shard, ...]

    @property
    def rows(self) -> int:
        """Records in all files, bad ones too."""
        return sum(file.rows for file in self.files)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What a step's fingerprint takes of the source: its name, each file's name and hash, in order."""
        return tuple(f"{self.source}/{file.name} {file.sha256}" for file in self.files)


KEPT_OF_TOO_LARGE = 4096
"""Bytes that are kept of a record over `read.max_record_bytes`."""


def too_large(limit: int) -> Rejected:
    """The fault of a record of more than `limit` bytes."""
    return Rejected("record-too-large", f"the record has more bytes than read.max_record_bytes, {limit:,}")
