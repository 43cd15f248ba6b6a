"""The records of a JSON text file as bytes, whatever its layout and compression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import BinaryIO

from turnmill.files.compressed import BrokenStream, unpacked
from turnmill.files.documents import split_array, split_concatenated
from turnmill.files.layout import UTF8_MARK
from turnmill.files.lines import split_lines
from turnmill.files.record import Compression, Piece, Shard


def pieces(file: BinaryIO, shard: Shard, limit: int) -> Iterator[Piece]:
    """The shard's records in order, not decoded.

    Args:
        file: the shard's file, standing at the shard's start.
        limit: bytes of the largest record.
    """
    stream: Iterable[bytes] = unpacked(file, shard.compression, shard.end)
    if shard.compression != "none":
        stream = _without_mark(stream)
    if shard.layout == "array":
        return split_array(stream, limit=limit)
    if shard.layout == "concatenated":
        return split_concatenated(stream, limit=limit)
    return split_lines(stream, limit=limit, line=shard.first_line, offset=shard.start)


def head_of(file: BinaryIO, compression: Compression, count: int) -> bytes:
    """The first `count` bytes of the unpacked file, fewer where it ends or breaks before."""
    head = b""
    with suppress(BrokenStream):
        for chunk in unpacked(file, compression):
            head += chunk
            if len(head) >= count:
                break
    return head[:count]


def _without_mark(stream: Iterable[bytes]) -> Iterator[bytes]:
    """The stream without the byte-order mark that a whole UTF-8 text may begin with."""
    chunks = iter(stream)
    first = b""
    for chunk in chunks:
        first += chunk
        if len(first) >= len(UTF8_MARK):
            break
    yield first.removeprefix(UTF8_MARK)
    yield from chunks
