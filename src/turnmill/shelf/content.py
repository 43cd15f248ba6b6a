"""A data file: its rows counted and hashed, its faults by line, its first lines, and the rows as they travel."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from turnmill.dialects.writing import write_record
from turnmill.errors import Rejected, TurnmillError, UsageError, quote
from turnmill.files.decode import decode
from turnmill.files.lines import split_lines
from turnmill.files.record import Piece
from turnmill.shelf.inside import State, opened_inside, state_of
from turnmill.shelf.manifest import Manifest

if TYPE_CHECKING:
    from turnmill.conversation import Checked, Json
    from turnmill.verbs.check import Outcome

MAX_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Of a row."""
MAX_RECORDS = 5_000_000
"""Of a data file."""
CHUNK_BYTES = 1 << 18
TOO_MANY = f"it has more than {MAX_RECORDS:,} rows; expected no more"
UTF8_MARK = b"\xef\xbb\xbf"
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""First bytes of gzip and zstd, which would unpack into more than the limit lets through."""
TRAVELS_AS = "openai"
"""Dialect of the JSON lines that rows of any other dialect or format travel as."""
PREVIEW_LINES, MAX_PREVIEW_LINES = 100, 1000


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a row, or (line 0) with the whole file."""

    file: str
    line: int
    error: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.error}" if self.line else f"{self.file}: {self.error}"


@dataclass(frozen=True, slots=True)
class Content:
    """A data file, read to its end."""

    size_bytes: int
    num_records: int
    sha256: str
    """Of the file's bytes, 64 hex digits."""
    is_usable: bool
    """Whether a job can be given it; by the line rule only without any fault."""


def examine(
    folder: Path, manifest: Manifest, limit: int = MAX_BYTES, on_fault: Callable[[Fault], None] | None = None
) -> Content:
    """Read the data file to its end.

    Args:
        folder: the dataset's real directory.
        manifest: of the dataset.
        limit: bytes of the largest file.
        on_fault: told of every fault; without it the first one that makes the file unusable is raised.

    Raises:
        UsageError: the file is not there, no file, outside, or has a fault that nobody is told of.
    """
    first: list[Fault] = []
    told = on_fault or first.append
    with opened_data(folder, manifest) as file:
        before = _state(file)
        if before[2] > limit:
            told(Fault(manifest.file, 0, f"it has {before[2]:,} bytes; expected at most {limit:,}"))
            content = Content(before[2], 0, "", is_usable=False)
        else:
            content = _examined(file, manifest, limit, told, stops_early=on_fault is None)
        if _state(file) != before:
            told(Fault(manifest.file, 0, "it was written to while it was read; look again when it is whole"))
            content = Content(content.size_bytes, content.num_records, content.sha256, is_usable=False)
    if not content.is_usable and on_fault is None:
        raise UsageError(str(first[-1]))
    return content


@contextmanager
def opened_data(folder: Path, manifest: Manifest) -> Iterator[BinaryIO]:
    """The data file, open.

    Raises:
        UsageError: as `examine`.
    """
    try:
        with opened_inside(folder, manifest.file) as file:
            yield file
    except (FileNotFoundError, NotADirectoryError):
        made = f"; {quote(manifest.generator)} generates it" if manifest.generator else ""
        raise UsageError(f"the data file {quote(manifest.file)} is not there{made}") from None
    except OSError as error:
        raise UsageError(f"cannot read the data file {quote(manifest.file)}: {error.strerror}") from None


def data_state(folder: Path, manifest: Manifest) -> State:
    """The state of the data file.

    Raises:
        UsageError: as `examine`.
    """
    with opened_data(folder, manifest) as file:
        return _state(file)


def data_size(file: BinaryIO) -> int:
    """Bytes of an open data file."""
    return _state(file)[2]


def sha256_of(folder: Path, manifest: Manifest) -> str:
    """Of the data file's bytes, 64 hex digits.

    Raises:
        UsageError: as `examine`.
    """
    with opened_data(folder, manifest) as file:
        found = hashlib.sha256()
        while chunk := file.read(CHUNK_BYTES):
            found.update(chunk)
        return found.hexdigest()


def _state(file: BinaryIO) -> State:
    return state_of(os.fstat(file.fileno()))


def _examined(
    file: BinaryIO, manifest: Manifest, limit: int, told: Callable[[Fault], None], *, stops_early: bool
) -> Content:
    counted = _Counted(file)
    if manifest.is_by_line_rule:
        records, is_usable = _by_line_rule(counted, manifest.file, told, stops_early=stops_early)
    else:
        records, is_usable = _by_dialect(counted, manifest, limit, told)
    if is_usable and not records:
        told(Fault(manifest.file, 0, "it has no record; expected at least one"))
        is_usable = False
    return Content(counted.size, records, counted.sha256.hexdigest(), is_usable)


class _Counted:
    """The chunks of a file, hashed and counted as they pass; no more of them than it had when it was opened."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = _state(file)[2]
        self.size = 0
        self.sha256 = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._file.read(min(CHUNK_BYTES, self._left)):
            self._left -= len(chunk)
            self.size += len(chunk)
            self.sha256.update(chunk)
            yield chunk


def _by_line_rule(chunks: _Counted, name: str, told: Callable[[Fault], None], *, stops_early: bool) -> tuple[int, bool]:
    """How many rows that are not blank, and whether each of them keeps the line rule."""
    records, is_usable = 0, True
    for piece in _lines(chunks):
        records += 1
        if records > MAX_RECORDS:
            told(Fault(name, 0, TOO_MANY))
            return records, False
        error = _fault_of(piece)
        if error is None:
            continue
        told(Fault(name, piece.line, error))
        is_usable = False
        if stops_early:
            break
    return records, is_usable


def _lines(chunks: Iterable[bytes]) -> Iterator[Piece]:
    """The lines that hold more than white space; of one that is too long only the beginning."""
    return (piece for piece in split_lines(chunks, limit=MAX_LINE_BYTES) if piece.raw.strip())


def _fault_of(piece: Piece) -> str | None:
    """What the line rule says against a line; None where it keeps it."""
    if piece.fault is not None:
        return f"the line has more than {MAX_LINE_BYTES:,} bytes"
    if piece.line == 1 and piece.raw.startswith(UTF8_MARK):
        return "the file begins with a byte-order mark; expected the first row"
    try:
        row = decode(piece.raw)
    except Rejected as fault:
        return str(fault)
    for key in ("instruction", "output"):
        if key not in row:
            return f"the row has no {key!r}; it has {quote(sorted(row))}"
    wrong = next((key for key in ("instruction", "input", "output") if not isinstance(row.get(key, ""), str)), None)
    return None if wrong is None else f"{wrong!r} is {quote(row[wrong])}; expected a text"


def _by_dialect(chunks: _Counted, manifest: Manifest, limit: int, told: Callable[[Fault], None]) -> tuple[int, bool]:
    """How many rows, and whether all were read and no more were rejected than a run lets a source lose."""
    from turnmill.options import Health
    from turnmill.shelf.unpacked import require_unpacks_to
    from turnmill.verbs.check import check_health

    counts: Counter[str] = Counter()
    unread: list[int] = []
    with _spooled(chunks, manifest) as path:
        try:
            if manifest.format == "parquet":
                require_unpacks_to(path, limit)
            unread.extend(
                outcome.record.source_line
                for outcome in _outcomes(path, manifest)
                if not _counted(outcome, manifest, counts, told)
            )
            if counts["rows/read"]:
                check_health(manifest.name, dict(counts), Health(), "")
        except TurnmillError as error:
            told(Fault(manifest.file, 0, str(error).replace(str(path), quote(manifest.file))))
            return counts["rows/read"], False
    if unread:
        told(
            Fault(manifest.file, 0, f"{len(unread)} rows cannot be read, the first of them {unread[0]}; expected none")
        )
    return counts["rows/read"], not unread


def _counted(outcome: Outcome, manifest: Manifest, counts: Counter[str], told: Callable[[Fault], None]) -> bool:
    """Whether the row could be read, which is more than being sound; `counts` and `told` take what it was.

    Raises:
        UsageError: it is one too many.
    """
    counts["rows/read"] += 1
    if counts["rows/read"] > MAX_RECORDS:
        raise UsageError(TOO_MANY)
    if outcome.fault is None:
        counts["rows/checked"] += 1
        return True
    counts["rows/rejected"] += 1
    counts[f"codes/{outcome.fault.code}"] += 1
    told(Fault(manifest.file, outcome.record.source_line, str(outcome.fault)))
    return outcome.stage != "read"


@contextmanager
def _spooled(chunks: Iterable[bytes], manifest: Manifest) -> Iterator[Path]:
    """A private copy, which nobody swaps while it is read."""
    with tempfile.TemporaryDirectory(prefix="turnmill-shelf-") as folder:
        path = Path(folder, PurePosixPath(manifest.file).name)
        with path.open("wb") as copy:
            copy.writelines(chunks)
        yield path


def _outcomes(path: Path, manifest: Manifest) -> Iterator[Outcome]:
    """Every row of a data file, checked or with its fault.

    Raises:
        UsageError: the file is empty, compressed, or its dialect cannot be told.
    """
    from turnmill.config import reloaded
    from turnmill.verbs.check import outcomes, tasks_of
    from turnmill.verbs.read import open_sources

    refuse_compressed(path, manifest)
    config = reloaded({"sources": [source_of(path, manifest)], "read": {"max_record_bytes": MAX_LINE_BYTES}})
    for opened in open_sources(config, is_hashed=False):
        for task in tasks_of(opened, config):
            yield from outcomes(task, Counter())


def refuse_compressed(path: Path, manifest: Manifest) -> None:
    """Refuse a data file that would unpack into more than its size.

    Raises:
        UsageError: it is compressed.
    """
    with path.open("rb") as file:
        if file.read(4).startswith(COMPRESSED):
            raise UsageError(f"{path} is compressed; expected {manifest.format} as it is")


def source_of(path: Path, manifest: Manifest) -> dict[str, Json]:
    """A data file as a source of a config."""
    return {
        "name": manifest.name,
        "data": [str(path)],
        "dialect": manifest.dialect or "auto",
        "columns": dict(manifest.columns),
        "roles": dict(manifest.roles),
    }


@contextmanager
def in_place(folder: Path, manifest: Manifest) -> Iterator[Path]:
    """A path of the very file that was opened, whatever becomes of its name; where the system has none, of a copy.

    Raises:
        UsageError: as `examine`.
    """
    with opened_data(folder, manifest) as file:
        opened = Path(f"/proc/self/fd/{file.fileno()}")
        if opened.exists():
            yield opened
            return
        with _spooled(_Counted(file), manifest) as path:
            yield path


@contextmanager
def copied(folder: Path, manifest: Manifest) -> Iterator[Path]:
    """A private copy of the data file, under its own name.

    Raises:
        UsageError: as `examine`.
    """
    with opened_data(folder, manifest) as file, _spooled(_Counted(file), manifest) as path:
        yield path


def row_outcomes(folder: Path, manifest: Manifest) -> Iterator[Outcome]:
    """Every row, checked as `prepare` would, or with its fault.

    Raises:
        UsageError: as `examine`, or the rows' dialect cannot be told.
    """
    with copied(folder, manifest) as path:
        yield from _outcomes(path, manifest)


def line_row(folder: Path, manifest: Manifest, line: int) -> int:
    """The number from 0 of the row on a line, counted from 1; of a file that is not JSON lines a line is a row.

    Raises:
        UsageError: as `examine`, or there is no row on that line.
    """
    if manifest.format != "jsonl":
        return line - 1
    with opened_data(folder, manifest) as file:
        for row, piece in enumerate(_lines(_Counted(file))):
            if piece.line >= line:
                if piece.line == line:
                    return row
                break
    raise UsageError(f"no row stands on line {line} of {quote(manifest.file)}")


def travelling_lines(folder: Path, manifest: Manifest) -> Iterator[bytes]:
    """The rows as a job is given them, a line each without its end: rows of a dialect as `openai` JSON lines.

    Rows that are not sound, or that `openai` cannot say, do not travel.

    Raises:
        UsageError: as `examine`.
    """
    with opened_data(folder, manifest) as file:
        if manifest.is_by_line_rule:
            yield from (piece.raw for piece in _lines(_Counted(file)))
            return
        with _spooled(_Counted(file), manifest) as path:
            for outcome in _outcomes(path, manifest):
                record = None if outcome.checked is None else _said(outcome.checked)
                if record is not None:
                    yield json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _said(checked: Checked) -> dict[str, Json] | None:
    try:
        return write_record(checked, TRAVELS_AS)
    except Rejected:
        return None


def first_lines(folder: Path, manifest: Manifest, count: int = PREVIEW_LINES) -> list[str]:
    """The first rows: lines of a file of JSON lines as they are, of another format as they travel.

    Raises:
        UsageError: as `examine`, or no such count.
    """
    if not 1 <= count <= MAX_PREVIEW_LINES:
        raise UsageError(f"{count} lines asked for; expected 1 to {MAX_PREVIEW_LINES}", next_step="--lines 100")
    if manifest.format != "jsonl":
        return [line.decode("utf-8") for line in islice(travelling_lines(folder, manifest), count)]
    with opened_data(folder, manifest) as file:
        return [piece.raw.decode("utf-8", "replace") for piece in islice(_lines(_Counted(file)), count)]
