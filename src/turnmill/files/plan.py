"""From a source to its shards, in one pass that also hashes and counts, so that every row's number is known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import BinaryIO, cast

import msgspec

from turnmill.conversation import Json
from turnmill.dialects.sessions import SAMPLE_EVENTS
from turnmill.errors import Rejected, StaleError, UsageError
from turnmill.files.compressed import detect
from turnmill.files.decode import decode
from turnmill.files.json_text import head_of, pieces
from turnmill.files.layout import HEAD_BYTES, UTF8_MARK, layout_of
from turnmill.files.parquet import opened
from turnmill.files.record import Piece, Shard, SourceFile, SourcePlan
from turnmill.files.resolve import resolve
from turnmill.files.sessions import gathered
from turnmill.files.storage import FileState, Hashing, look_at, open_binary, sha256_of, state_of
from turnmill.options import Read

SHARD_BYTES = 8 * 1024 * 1024
"""About how much of a file one shard holds: stored bytes of JSON lines, unpacked bytes of Parquet."""

SessionOf = Callable[[Callable[[], list[dict[str, Json]]]], str | None]
"""Takes what gives a file's first records."""

_PLAIN_TEXT = re.compile(r"\.txt(\.(gz|gzip|zst|zstd))?$", re.IGNORECASE)


def plan(  # noqa: PLR0913  # one keyword for each thing that may differ
    source: str,
    data: Sequence[str] | Sequence[tuple[str, str]],
    options: Read,
    *,
    first_row: int = 0,
    shard_bytes: int = SHARD_BYTES,
    plain_text: bool = False,
    session_of: SessionOf | None = None,
    is_hashed: bool = True,
) -> SourcePlan:
    """The source's files and shards; reads every file once, and the beginning of one that may be a session once more.

    Args:
        source: the source's name.
        data: files, directories, globs, URLs or `-`; or files that are known, path and name of each.
        options: what makes a record too large.
        first_row: number of the source's first record over all inputs: the rows of the sources before it.
        shard_bytes: see `SHARD_BYTES`; files that cannot be split are one shard whatever it is.
        plain_text: a file whose name says that it is text (`is_plain_text`) is lines, whatever it begins with.
        session_of: the session dialect of a JSON file that begins with these records, nothing where each record is a
            row; None asks of no file.
        is_hashed: False leaves the hashes of most files empty: for what is looked at and left.

    Raises:
        UsageError: nothing found, or a file is unreadable, empty, or of a kind that is not read.
        StaleError: a file changed while it was hashed.
    """
    files: list[SourceFile] = []
    shards: list[Shard] = []
    for path, name in _named(data):
        whole = whole_file(source, path, name, first_row)
        if plain_text and is_plain_text(name):
            whole = msgspec.structs.replace(whole, layout="lines")
        if whole.layout == "parquet":
            sha256, cut = sha256_of(path) if is_hashed else "", list(row_groups(whole, shard_bytes))
        elif session_of is not None and (session := session_of(partial(first_records, whole, options))):
            whole = msgspec.structs.replace(whole, session=session)
            sha256, cut = _session(whole, options.max_record_bytes)
        else:
            sha256, cut = _ranges(whole, options.max_record_bytes, shard_bytes, is_hashed=is_hashed)
        rows = sum(shard.rows for shard in cut)
        if state_of(path) != FileState(whole.file_bytes, whole.file_version):
            raise StaleError(f"{path} changed while it was read; expected a file at rest", next_step=look_at(path))
        if not rows and not whole.session:
            raise UsageError(f"{path} is empty: it holds no record", next_step=look_at(path))
        files.append(SourceFile(path, name, whole.file_bytes, sha256, whole.layout, whole.compression, rows))
        shards += [msgspec.structs.replace(shard, file_sha256=sha256) for shard in cut]
        first_row += rows
    if not any(file.rows for file in files):
        what = f"source {source!r} holds no conversation: in none of its {len(files):,} session(s) does anybody answer"
        raise UsageError(what, next_step=look_at(files[0].path))
    return SourcePlan(source, tuple(files), tuple(shards))


def _named(data: Sequence[str] | Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Path and name of each file."""
    known = [item for item in data if not isinstance(item, str)]
    return known or resolve([item for item in data if isinstance(item, str)])


def first_records(whole: Shard, options: Read) -> list[dict[str, Json]]:
    """The first records of a JSON file that can be read."""
    with open_binary(whole.path) as file:
        file.seek(whole.start)
        found = (_decoded(piece) for piece in islice(pieces(file, whole, options.max_record_bytes), SAMPLE_EVENTS))
        return [value for value in found if value is not None]


def _decoded(piece: Piece) -> dict[str, Json] | None:
    try:
        return None if piece.fault else decode(piece.raw)
    except Rejected:
        return None


def _session(whole: Shard, limit: int) -> tuple[str, list[Shard]]:
    """sha256 of a session file, and the one shard that it is, with as many rows as it gives."""
    with open_binary(whole.path) as file:
        hashing = cast(BinaryIO, Hashing(file))
        hashing.read(whole.start)
        rows = len(gathered(pieces(hashing, whole, limit), whole.session, limit, Counter()))
        while hashing.read(1 << 20):
            pass
        sha256 = cast(Hashing, hashing).hexdigest()
    return sha256, [msgspec.structs.replace(whole, rows=rows)]


def is_plain_text(name: str) -> bool:
    """Whether a file's name says that it is plain text."""
    return _PLAIN_TEXT.search(name) is not None


def whole_file(source: str, path: str, name: str, first_row: int) -> Shard:
    """The file as one shard, its records not yet counted."""
    with open_binary(path) as file:
        stored, version = state_of(path)
        if not stored:
            raise UsageError(f"{path} is empty: it has no bytes", next_step=look_at(path))
        compression = detect(file.read(16), path)
        file.seek(0)
        head = head_of(file, compression, HEAD_BYTES)
    layout = layout_of(head, path)
    start = len(UTF8_MARK) if compression == "none" and layout != "parquet" and head.startswith(UTF8_MARK) else 0
    return Shard(source, path, name, layout, compression, stored, version, "", start, stored, 1, first_row, 0)


def _ranges(whole: Shard, limit: int, shard_bytes: int, *, is_hashed: bool) -> tuple[str, list[Shard]]:
    """sha256 of a JSON text file, and its shards: byte ranges that begin at lines, or the whole file."""
    splittable = whole.layout == "lines" and whole.compression == "none"
    done: list[Shard] = []
    current, rows = whole, 0
    with open_binary(whole.path) as file:
        hashing = cast(BinaryIO, Hashing(file)) if is_hashed else file
        hashing.read(whole.start)
        for piece in pieces(hashing, whole, limit):
            if splittable and rows and piece.offset - current.start >= shard_bytes:
                done.append(msgspec.structs.replace(current, end=piece.offset, rows=rows))
                first_row = current.first_row + rows
                current = msgspec.structs.replace(whole, start=piece.offset, first_line=piece.line, first_row=first_row)
                rows = 0
            rows += 1
        sha256 = cast(Hashing, hashing).hexdigest() if is_hashed else ""
    return sha256, [*done, msgspec.structs.replace(current, rows=rows)] if rows else done


def row_groups(whole: Shard, shard_bytes: int) -> Iterator[Shard]:
    """Shards of as many row groups as `shard_bytes` hold, at least one."""
    with opened(whole.path, whole.compression) as parquet:
        metadata = parquet.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    start = line = rows = held = 0
    for number, group in enumerate(groups):
        rows, held = rows + group.num_rows, held + group.total_byte_size
        is_last = number + 1 == len(groups)
        if rows and (is_last or (held >= shard_bytes and whole.compression == "none")):
            yield msgspec.structs.replace(
                whole, start=start, end=number + 1, first_line=line + 1, first_row=whole.first_row + line, rows=rows
            )
            start, line, rows, held = number + 1, line + rows, 0, 0
