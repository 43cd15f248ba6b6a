"""JSON lines: where each begins and ends. Only line feeds end a line; U+2028 and U+0085 are text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from turnmill.files.compressed import BrokenStream
from turnmill.files.record import KEPT_OF_TOO_LARGE, Piece, too_large

_BLANK = b" \t\r"


def split_lines(chunks: Iterable[bytes], *, limit: int, line: int = 1, offset: int = 0) -> Iterator[Piece]:
    """The lines that are not blank, in order.

    Args:
        chunks: bytes from the start of a line on.
        limit: a line of more bytes is a fault, and only its first bytes are kept.
        line: number of the first line.
        offset: bytes before it.
    """
    begun = _Begun(limit)
    try:
        for chunk in chunks:
            if not begun.length and not chunk.strip(b"\n"):  # packs into nothing, so it must pass quickly
                line, offset = line + len(chunk), offset + len(chunk)
                continue
            *whole, rest = chunk.split(b"\n")
            for part in whole:
                if begun.length or len(part) > limit:
                    begun.grow(part)
                    piece, length, begun = begun.piece(line, offset), begun.length, _Begun(limit)
                else:
                    piece, length = _whole(part, line, offset), len(part)
                if piece is not None:
                    yield piece
                line += 1
                offset += length + 1
            begun.grow(rest)
    except BrokenStream as broken:
        yield Piece(line, offset, begun.kept(), broken.fault, fatal=True)
        return
    if (piece := begun.piece(line, offset)) is not None:
        yield piece


class _Begun:
    """A line whose end has not been seen: its length, and no more of its bytes than the limit."""

    __slots__ = ("length", "limit", "parts")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.parts: list[bytes] = []
        self.length = 0

    def grow(self, part: bytes) -> None:
        """The line goes on."""
        was_too_large = self.length > self.limit
        self.length += len(part)
        if was_too_large:
            return
        self.parts.append(part)
        if self.length > self.limit:
            self.parts = [self.kept()[:KEPT_OF_TOO_LARGE]]

    def kept(self) -> bytes:
        """Its bytes, or the first of them if it is too large."""
        return self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)

    def piece(self, line: int, offset: int) -> Piece | None:
        """The line as a record, None if it holds nothing but white space."""
        raw = self.kept()
        if self.length > self.limit:
            return Piece(line, offset, raw, too_large(self.limit))
        return _whole(raw, line, offset)


def _whole(raw: bytes, line: int, offset: int) -> Piece | None:
    """A line as a record, None if it holds nothing but white space."""
    return Piece(line, offset, raw.removesuffix(b"\r")) if raw.strip(_BLANK) else None
