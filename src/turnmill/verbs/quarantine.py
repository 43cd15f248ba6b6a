"""quarantine: the rows that left a prepared folder, to be looked at, and taken out to be mended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from turnmill.conversation import Json
from turnmill.errors import UnknownName, UsageError, shell_word
from turnmill.files.disk import beside, writing
from turnmill.files.inventory import FileEntry, verify
from turnmill.files.quarantine import Left, from_table
from turnmill.files.tables import batches

QUARANTINE, DUPLICATES = "quarantine/", "duplicates/"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows are asked for; None asks for all."""

    code: str | None = None
    source: str | None = None
    stage: str | None = None
    duplicates: bool = False
    """Rows that left as duplicates, in place of all others."""

    def takes(self, left: Left) -> bool:
        """Whether a row is one of them."""
        asked = ((self.code, left.code), (self.source, left.source), (self.stage, left.stage))
        return all(wanted in (None, found) for wanted, found in asked)


def left_rows(folder: Path, wanted: Wanted) -> Iterator[Left]:
    """The rows of a prepared folder that left, in the order of its files; only files that its manifest lists are read.

    Raises:
        UsageError: no prepared folder.
        StaleError: a file is missing or changed.
    """
    entries = msgspec.convert(verify(folder, whole=False)["files"], list[FileEntry])
    start = DUPLICATES if wanted.duplicates else QUARANTINE
    for entry in entries:
        if entry.path.startswith(start) and entry.path.endswith(".parquet"):
            for batch in batches(folder / entry.path):
                yield from filter(wanted.takes, from_table(batch))


def summary(folder: Path, wanted: Wanted) -> Counter[tuple[str, str, str]]:
    """(class, code, source) → rows.

    Raises:
        UnknownName: a code, source or stage that no row left with; the message suggests the nearest.
    """
    counts: Counter[tuple[str, str, str]] = Counter(
        (left.class_, left.code, left.source) for left in left_rows(folder, wanted)
    )
    if not counts:
        _refuse_unknown(folder, wanted)
    return counts


def _refuse_unknown(folder: Path, wanted: Wanted) -> None:
    """Tell a name that nobody left with from an empty answer."""
    names: dict[str, Callable[[Left], str]] = {
        "code": lambda left: left.code,
        "source": lambda left: left.source,
        "stage": lambda left: left.stage,
    }
    rows = list(left_rows(folder, Wanted(duplicates=wanted.duplicates)))
    for what, of in names.items():
        name, known = getattr(wanted, what), {of(left) for left in rows}
        if name is not None and name not in known and known:
            raise UnknownName(what, name, known, next_step=f"turnmill quarantine show {shell_word(folder)}")


def as_json(left: Left) -> dict[str, Json]:
    """One line of `quarantine show --json`."""
    return {
        "row": left.row,
        "source": left.source,
        "source_file": left.source_file,
        "source_line": left.source_line,
        "class": left.class_,
        "stage": left.stage,
        "code": left.code,
        "message": left.message,
        "at": left.at,
        "record": left.record,
        "record_encoding": left.record_encoding,
        "config": left.config,
    }


def export(folder: Path, wanted: Wanted, target: Path) -> int:
    """Write the rows as they were read, one a line, and give how many; bytes that are not UTF-8 stay as they were.

    Raises:
        UsageError: the target is there already, or cannot be written.
    """
    if target.exists():
        raise UsageError(
            f"{target} is there already; nothing was written", next_step=f"--to {shell_word(free_name(target))}"
        )
    draft, count = beside(target, "draft"), 0
    with writing(target):
        try:
            with draft.open("wb") as file:
                for left in left_rows(folder, wanted):
                    file.write(one_line(left.raw) + b"\n")
                    count += 1
            draft.rename(target)
        finally:
            draft.unlink(missing_ok=True)
    return count


def one_line(raw: bytes) -> bytes:
    """A record without line breaks of its own: in JSON they can only stand between values."""
    return raw if b"\n" not in raw and b"\r" not in raw else raw.replace(b"\r", b" ").replace(b"\n", b" ")


def free_name(target: Path) -> Path:
    """A name like the target's that no file has yet."""
    numbers = (target.with_name(f"{target.stem}-{number}{target.suffix}") for number in range(2, 1000))
    return next((name for name in numbers if not name.exists()), target)
