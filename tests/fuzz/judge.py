"""What becomes of a file that nobody meant, and whether that may be: rows, coded faults, and nothing else."""

from __future__ import annotations

import random
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fuzz.damage import case
from turnmill.codes import CODES
from turnmill.contract import check
from turnmill.conversation import Checked
from turnmill.dialects import Mapping, Reading, convert, dialects, writers
from turnmill.dialects.detect import detect
from turnmill.dialects.writing import write_record
from turnmill.errors import Rejected, UsageError
from turnmill.files import canonical
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.files.record import Record
from turnmill.options import Check, Read, Source
from turnmill.repairs import repairs
from turnmill.verbs.check import RecordCheck

LIMIT_S = 5.0
"""More for one case is a hang."""
BATCH_ROWS = 200
AUTO = "auto"


class Finding(NamedTuple):
    """A case that ended as none may."""

    number: int
    dialect: str
    what: str


class Hang(BaseException):
    """A case took longer than it may; no `except Exception` takes it."""


@contextmanager
def time_limit() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def records_of(content: bytes, path: Path, draw: random.Random) -> list[Record]:
    """The records of a file that holds these bytes; raises `UsageError` for a file that is not read."""
    path.write_bytes(content)
    read = Read(max_record_bytes=draw.choice([400, 1 << 26]))
    planned = plan("s", [str(path)], read, shard_bytes=draw.choice([50, 1 << 20]))
    return [record for shard in planned.shards for record in records(shard, read)]


class Judge:
    """Gives each case to every dialect and to `auto`, and keeps what should not be."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self._path = folder / "case.jsonl"
        self.cases = 0
        self.outcomes: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.slowest: tuple[float, int] = (0.0, -1)
        self._accepted: list[tuple[int, str, Checked]] = []
        self._names = dialects.names()

    def run(self, numbers: range) -> None:
        for number in numbers:
            started = time.perf_counter()
            at = "reading"
            try:
                with time_limit():
                    for name in self._steps(number):
                        at = name
            except Hang:
                self.findings.append(Finding(number, at, f"over {LIMIT_S} s"))
            except Exception:
                self.findings.append(Finding(number, at, traceback.format_exc(limit=-4)))
            self.slowest = max(self.slowest, (time.perf_counter() - started, number))
            if len(self._accepted) >= BATCH_ROWS:
                self._read_back()
        self._read_back()

    def _steps(self, number: int) -> Iterator[str]:
        """The names of the dialects that the case is given to, each while it is at work."""
        draw = random.Random(number)
        yield "reading"
        self.cases += 1
        try:
            found = records_of(case(self.seed, number), self._path, draw)
        except UsageError:
            self.outcomes["file refused"] += 1
            return
        for record in found:
            for name in (AUTO, *self._names):
                yield name
                self._judge(number, name, record, draw)

    def _judge(self, number: int, name: str, record: Record, draw: random.Random) -> None:
        if name == AUTO:
            if record.value is None:
                return
            try:
                name = detect([record.value], Mapping()).name
            except UsageError:
                self.outcomes["dialect not told"] += 1
                return
        mended = [repair for repair in repairs.names() if draw.random() < 0.15] if draw.random() < 0.3 else []
        source = Source(name="s", data=["case.jsonl"], repairs=mended)
        checking = RecordCheck(source, name, Read(), Check(), draw.random() < 0.2, Counter())
        before = repr(record.value)
        outcome = checking.outcome(record)
        if repr(record.value) != before:
            self._find(number, name, "the record was changed")
        if outcome.fault is not None:
            self._rejected(number, name, outcome.fault)
            return
        self.outcomes["accepted"] += 1
        assert outcome.checked is not None
        self._accepted.append((number, name, outcome.checked))
        self._write(number, outcome.checked, draw)

    def _rejected(self, number: int, name: str, fault: Rejected) -> None:
        self.outcomes["rejected"] += 1
        self.codes[fault.code] += 1
        if fault.code not in CODES:
            self._find(number, name, f"a code that nobody knows: {fault.code}")

    def _write(self, number: int, row: Checked, draw: random.Random) -> None:
        target = draw.choice(sorted(writers))
        try:
            write_record(row, target)
            self.outcomes["written"] += 1
        except Rejected as fault:
            self.outcomes["not written"] += 1
            if fault.code not in CODES:
                self._find(number, target, f"a code that nobody knows: {fault.code}")

    def _read_back(self) -> None:
        """Every accepted row is the same row when it was stored: as a table, and as a record of our own dialect."""
        rows, self._accepted = self._accepted, []
        if not rows:
            return
        try:
            stored = canonical.readmit(canonical.to_table([row for _, _, row in rows]))
        except Exception as problem:
            self._find(rows[0][0], "table", f"one of {len(rows)} rows: {problem!r}")
            return
        for (number, name, row), back in zip(rows, stored, strict=True):
            if back.id != row.id or back.messages != row.messages or back.verbatim != row.verbatim:
                self._find(number, name, "stored as another row")
            record = canonical.to_row(row)
            try:
                again = check(convert(record, dialects.get("turnmill"), Reading(fractional=True)))
            except Rejected as fault:
                self._find(number, name, f"our own record is rejected: {fault}")
                continue
            if again.id != row.id or [m.weight for m in again.messages] != [m.weight for m in row.messages]:
                self._find(number, name, "our own record is read as another row")

    def _find(self, number: int, dialect: str, what: str) -> None:
        self.findings.append(Finding(number, dialect, what))
