"""Compressed streams: told by their first bytes, read member after member, and their faults told apart."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO, cast

from turnmill.errors import Rejected, UsageError, shell_word
from turnmill.files.record import Compression
from turnmill.files.storage import CHUNK_BYTES, chunks

_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_SKIPPABLE_FRAME = b"\x2a\x4d\x18"
"""Bytes 1 to 3 of a zstd skippable frame, which may stand first; byte 0 is 0x50 to 0x5f."""

_FOREIGN: dict[bytes, tuple[str, str]] = {
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ": ("xz", "unxz"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"\x04\x22\x4d\x18": ("lz4", "unlz4"),
    b"ARROW1": ("Arrow IPC", ""),
    b"ORC": ("ORC", ""),
    b"Obj\x01": ("Avro", ""),
    b"SQLite format 3": ("SQLite", ""),
}
"""First bytes of what is recognised and not read: its name, and the command that unpacks it."""

FREE_UNPACKED_BYTES = 1 << 28
"""A stream that unpacks to no more than this may be as dense as it likes."""
MAX_RATIO = 200
"""Unpacked bytes for a packed one, over the whole stream; chats have 3 to 30."""

_ZSTD_INPUT_BYTES = 2048
"""So few that what they can unpack to at once, 64 MiB, does not matter."""
_ZSTD_WINDOW_BYTES = 1 << 31


class BrokenStream(Exception):
    """A compressed stream that ends early or is damaged; `fault` says which."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.fault = Rejected(code, message)


def detect(head: bytes, path: str) -> Compression:
    """The compression that a file's first bytes announce.

    Raises:
        UsageError: a container that is recognised but not read.
    """
    for magic, (what, command) in _FOREIGN.items():
        if head.startswith(magic):
            step = f"{command} {shell_word(path)}" if command else None
            raise UsageError(f"{path} is {what}; expected JSON text or Parquet, plain, gzip or zstd", next_step=step)
    if head[1:4] == _SKIPPABLE_FRAME and 0x50 <= head[0] <= 0x5F:
        return "zstd"
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), "none")


def unpacked(file: BinaryIO, compression: Compression, end: int | None = None) -> Iterator[bytes]:
    """The stream's bytes, a chunk at a time, all gzip members or zstd frames of it.

    Raises:
        BrokenStream: after all bytes that could be unpacked, where the stream ends early or is damaged.
    """
    if compression == "none":
        return chunks(file, end)
    packed = _Counting(file)
    return _bounded(_gzip(packed) if compression == "gzip" else _zstd(packed), packed)


class _Counting:
    """A readable file that counts the bytes that are read from it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.bytes = 0

    def read(self, count: int = -1) -> bytes:
        """The next bytes, counted."""
        data = self._file.read(count)
        self.bytes += len(data)
        return data


def _bounded(stream: Iterator[bytes], packed: _Counting) -> Iterator[bytes]:
    """The stream, up to where it unpacks to so much more than it holds that nobody meant it.

    Raises:
        BrokenStream: there.
    """
    unpacked_bytes = 0
    for chunk in stream:
        for start in range(0, len(chunk), CHUNK_BYTES):  # what is dense comes in long chunks
            yield chunk[start : start + CHUNK_BYTES]
            unpacked_bytes += min(CHUNK_BYTES, len(chunk) - start)
            if unpacked_bytes > max(FREE_UNPACKED_BYTES, MAX_RATIO * packed.bytes):
                times = f"more than {MAX_RATIO} times as many"
                what = f"{packed.bytes:,} packed bytes unpack to over {unpacked_bytes:,}, {times}"
                raise BrokenStream("unpacks-too-far", what)


def _gzip(file: _Counting) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=cast(BinaryIO, file), mode="rb") as stream:
        while True:
            try:
                chunk = stream.read1(CHUNK_BYTES)
            except EOFError as problem:
                raise BrokenStream("truncated-file", "the gzip stream ends before its end marker") from problem
            except (gzip.BadGzipFile, zlib.error) as problem:
                raise BrokenStream("damaged-file", f"the gzip stream is damaged: {problem}") from problem
            if not chunk:
                return
            yield chunk


def _zstd(file: _Counting) -> Iterator[bytes]:
    import zstandard

    factory = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    frame, begun = factory.decompressobj(), False
    while data := file.read(_ZSTD_INPUT_BYTES):
        while data:
            try:
                chunk = frame.decompress(data)
            except zstandard.ZstdError as problem:
                raise BrokenStream("damaged-file", f"the zstd stream is damaged: {problem}") from problem
            if chunk:
                yield chunk
            data, begun = frame.unused_data if frame.eof else b"", not frame.eof
            if frame.eof:
                frame = factory.decompressobj()
    if begun:
        raise BrokenStream("truncated-file", "the zstd stream ends inside a frame")
