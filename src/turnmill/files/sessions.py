"""Session files: the events of one file, and the rows that its dialect gathers out of them.

A session is read whole, for its links lead anywhere, but no more of it is held than its conversations need, and that
only up to `read.max_record_bytes`: a session is a record there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.dialects.sessions import Event, Thread, session_of, threads_of
from turnmill.errors import Rejected, UsageError
from turnmill.files.decode import decode, decode_exactly
from turnmill.files.record import KEPT_OF_TOO_LARGE, Piece, Record, Shard, too_large

HALF_CHARACTER = "lone-surrogate"
"""The fault of a line that is mended in the conversations it belongs to, where the source asks for it."""


class Gathered(NamedTuple):
    """One row of a session: a thread, or a line that cannot be read."""

    found: Thread | Piece

    def record(self, shard: Shard, row: int) -> Record:
        """The row as a record."""
        if isinstance(self.found, Piece):
            broken = self.found
            return Record(shard.source, shard.name, broken.line, row, broken.raw, None, broken.fault, broken.fatal)
        value, fault = {"trace": shard.session, **self.found.record}, self.found.fault
        try:
            raw = msgspec.json.encode(value)
        except UnicodeEncodeError:
            raw = json.dumps(value).encode("ascii")
            fault = fault or _fault_of(raw)
        return Record(shard.source, shard.name, self.found.line, row, raw, None if fault else value, fault)


def gathered(pieces: Iterable[Piece], name: str, limit: int, counts: Counter[str]) -> list[Gathered]:
    """The rows of a session file, in file order; none for a session in which nobody answers, which is counted.

    Args:
        pieces: the file's lines or elements.
        name: of the session dialect.
        limit: bytes of the lines that its conversations need, and of those that cannot be read.
        counts: takes `read/<what>`.
    """
    session = session_of(name)
    if session is None:
        raise UsageError(f"the dialect {name} reads no sessions", next_step="turnmill list dialects")
    events: list[Event] = []
    broken: list[Gathered] = []
    held = 0
    for piece in pieces:
        value, fault = _decoded(piece)
        taken = session.take(value, counts) if value is not None else None
        if fault is None and taken is None:
            continue
        held += len(piece.raw)
        events.append(Event(piece.line, taken, len(piece.raw)))
        if fault is not None:
            broken.append(Gathered(piece._replace(fault=fault)))
        if held > limit:
            return [Gathered(Piece(1, 0, piece.raw[:KEPT_OF_TOO_LARGE], too_large(limit)))]
    found = [*map(Gathered, threads_of(session, events, counts)), *broken]
    if not found:
        counts["read/session-without-answer"] += 1
    return sorted(found, key=lambda one: one.found.line)


def _decoded(piece: Piece) -> tuple[dict[str, Json] | None, Rejected | None]:
    """The object that a line holds, or why it holds none; half a surrogate pair is let through."""
    if piece.fault is not None:
        return None, piece.fault
    try:
        return decode(piece.raw), None
    except Rejected as rejected:
        fault = rejected.with_traceback(None)
    if fault.code != HALF_CHARACTER:
        return None, fault
    try:
        return decode_exactly(piece.raw, admit_surrogates=True), None
    except Rejected as rejected:
        return None, rejected.with_traceback(None)


def _fault_of(raw: bytes) -> Rejected | None:
    try:
        decode(raw)
    except Rejected as rejected:
        return rejected.with_traceback(None)
    return None
