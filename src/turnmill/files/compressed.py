"""Compressed streams: told by their first bytes, read member after member, and their faults told apart."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

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

_ZSTD_INPUT_BYTES = 8192
"""So few that what they can unpack to stays bounded, whatever they claim."""
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
    if compression == "gzip":
        return _gzip(file)
    return _zstd(file) if compression == "zstd" else chunks(file, end)


def _gzip(file: BinaryIO) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file, mode="rb") as stream:
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


def _zstd(file: BinaryIO) -> Iterator[bytes]:
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
