"""The rows that left a job's prepared data, page by page, and what other repairs would make of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnmill.codes import CODES
from turnmill.errors import UsageError
from turnmill.files.inventory import FileEntry, verify
from turnmill.files.quarantine import Left, from_table
from turnmill.verbs.quarantine import DUPLICATES, QUARANTINE, Wanted

if TYPE_CHECKING:
    import pyarrow.parquet as pq

EXCERPT_CHARACTERS = 4000
"""Of a row."""
MAX_LOOKED_AT = 50_000
"""Rows that are looked at for one page."""
MAX_SECONDS = 20.0
"""Of a replay."""
MAX_EXAMPLES = 20
REASON = ("class", "code", "source", "stage")


@dataclass(frozen=True, slots=True)
class LeftPage:
    """Some of the rows that left, and where the next ones begin."""

    rows: list[tuple[int, Left]]
    """Number among all that left, and the row."""
    next: int | None


def reasons(folder: Path, *, duplicates: bool = False) -> list[dict[str, Any]]:
    """Why rows left a prepared folder, and how many, the most frequent first.

    Raises:
        UsageError: no prepared folder.
        StaleError: a file is missing or changed.
    """
    import pyarrow.parquet as pq

    counts: Counter[tuple[str, ...]] = Counter()
    for entry in _entries(folder, duplicates):
        columns = pq.read_table(folder / entry.path, columns=list(REASON)).to_pydict()
        counts.update(zip(*(columns[name] for name in REASON), strict=True))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{**dict(zip(REASON, reason, strict=True)), "rows": rows, **_told(reason[1])} for reason, rows in ordered]


def _told(code: str) -> dict[str, str]:
    known = CODES.get(code)
    return {"means": known.means if known else "", "remedy": known.remedy if known else ""}


def left_page(folder: Path, wanted: Wanted, start: int, limit: int) -> LeftPage:
    """Rows that left a prepared folder, in the order of its files.

    A page can be short, or empty, and yet not the last: at most `MAX_LOOKED_AT` rows are looked at for it.

    Args:
        folder: of the prepared rows.
        wanted: which rows.
        start: number of the first row that is looked at.
        limit: at most so many.

    Raises:
        UsageError: no prepared folder.
        StaleError: a file is missing or changed.
    """
    found: list[tuple[int, Left]] = []
    for number, left in _numbered(folder, wanted, start):
        if len(found) == limit or number - start >= MAX_LOOKED_AT:
            return LeftPage(found, number)
        if left is not None:
            found.append((number, left))
    return LeftPage(found, None)


def _numbered(folder: Path, wanted: Wanted, start: int) -> Iterator[tuple[int, Left | None]]:
    """Number and row; None of one that is not wanted. Groups of rows in front of `start` are not read."""
    import pyarrow.parquet as pq

    number = 0
    for entry in _entries(folder, wanted.duplicates):
        with pq.ParquetFile(folder / entry.path) as stored:
            for group in range(stored.num_row_groups):
                rows = stored.metadata.row_group(group).num_rows
                if number + rows > start:
                    yield from _of_group(stored, group, wanted, range(number, number + rows), start)
                number += rows


def _of_group(
    stored: pq.ParquetFile, group: int, wanted: Wanted, numbers: range, start: int
) -> Iterator[tuple[int, Left | None]]:
    """A group of rows; the records themselves are read only where any row is wanted."""
    reason = stored.read_row_group(group, ["code", "source", "stage"]).to_pydict()
    asked = [(reason[name], getattr(wanted, name)) for name in reason]
    takes = [all(want in (None, values[at]) for values, want in asked) for at in range(len(numbers))]
    rows = list(from_table(stored.read_row_group(group))) if any(takes) else [None] * len(numbers)
    for at, number in enumerate(numbers):
        if number >= start:
            yield number, rows[at] if takes[at] else None


def _entries(folder: Path, duplicates: bool) -> list[FileEntry]:
    entries = msgspec.convert(verify(folder, whole=False)["files"], list[FileEntry])
    place = DUPLICATES if duplicates else QUARANTINE
    return [one for one in entries if one.path.startswith(place) and one.path.endswith(".parquet")]


def left_as_json(number: int, left: Left) -> dict[str, Any]:
    """A row that left, with the beginning of what it was."""
    said = {name.removesuffix("_"): getattr(left, name) for name in Left.__struct_fields__}
    kept = (*REASON, "row", "source_file", "source_line", "message", "at")
    whole = len(left.record) <= EXCERPT_CHARACTERS
    return {
        "number": number,
        **{name: said[name] for name in kept},
        "excerpt": left.record[:EXCERPT_CHARACTERS],
        "is_whole": whole,
    }


def replay_counts(
    folder: Path, wanted: Wanted, named: Sequence[str] | None, *, max_seconds: float = MAX_SECONDS
) -> dict[str, Any]:
    """What the rows that left would become with other repairs; nothing is written.

    Args:
        folder: of the prepared rows.
        wanted: which rows.
        named: repairs, each of those that are built in or installed; None: the ones that the rows were prepared with.
        max_seconds: after which no further row is checked.

    Raises:
        UsageError: no prepared folder, or a repair that there is not.
        StaleError: a file is missing or changed.
    """
    from turnmill.repairs import repairs
    from turnmill.verbs.replay import PASSES, config_of, outcomes

    unknown = [name for name in named or () if name not in repairs.names()]
    if unknown:  # a name of a file would be code
        raise UsageError(f"no repair is called {unknown[0]!r}; expected one of {', '.join(repairs.names())}")
    counts: Counter[tuple[str, str]] = Counter()
    examples: list[dict[str, Any]] = []
    later, complete, until = 0, True, time.monotonic() + max_seconds
    for one in outcomes(folder, wanted, config_of(folder, (), named)):
        if time.monotonic() > until:
            complete = False
            break
        if not one.becomes:
            later += 1
            continue
        counts[one.left.code, one.becomes] += 1
        if one.record is not None and len(examples) < MAX_EXAMPLES:
            examples.append(_before_and_after(one.left, one.record))
    return {
        "rows": counts.total(),
        "passes": sum(rows for (_, becomes), rows in counts.items() if becomes == PASSES),
        "left_later": later,
        "counts": [
            {"code": code, "becomes": becomes, "rows": rows} for (code, becomes), rows in sorted(counts.items())
        ],
        "examples": examples,
        "complete": complete,
    }


def _before_and_after(left: Left, record: dict[str, Any]) -> dict[str, Any]:
    import json

    after = json.dumps(record["messages"], ensure_ascii=False, indent=1)
    place = {name: getattr(left, name) for name in ("source", "source_file", "source_line", "code")}
    return {**place, "before": left.record[:EXCERPT_CHARACTERS], "after": after[:EXCERPT_CHARACTERS]}
