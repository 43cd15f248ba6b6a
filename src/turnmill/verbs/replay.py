"""quarantine replay: the rejected rows of a prepared folder, mended and checked once more under other options.

What passes is written as a further source of canonical rows (dialect `turnmill`): as it was mended and checked, with
the recorded content of its think blocks, so that it needs none of the options that it was read with. Its old place,
code and repairs stand in the column `replayed`, as JSON text.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnmill.conversation import PROVENANCE, Checked, Json, recorded_json
from turnmill.dialects.canonical import ALWAYS_KEPT
from turnmill.errors import Rejected, StaleError, UsageError
from turnmill.files.canonical import to_row
from turnmill.files.decode import decode
from turnmill.files.disk import beside, writing
from turnmill.files.inventory import verify
from turnmill.files.quarantine import Left
from turnmill.files.record import Record
from turnmill.repairs import repairs
from turnmill.verbs.check import MENDABLE, RecordCheck
from turnmill.verbs.quarantine import Wanted, free_name, left_rows, summary
from turnmill.verbs.read import kept_annotations

if TYPE_CHECKING:
    from turnmill.config import Config

RUN = "run.json"
PASSES = "passes"
STAGES = ("read", "convert", "repair", "check")
"""Where a row leaves as its record; later it is a checked row, which check has nothing more to say to."""


class Replayed(NamedTuple):
    """What became of a row that had left."""

    left: Left
    becomes: str
    """`passes`, or the code that it leaves with now."""
    record: dict[str, Json] | None = None
    """To be written, where it passes."""


@dataclass(slots=True)
class Summary:
    """What a replay found: counts of (old code, what it becomes, source)."""

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    later: int = 0
    """Rows that left behind check and were not replayed."""

    @property
    def passing(self) -> int:
        """Rows that pass now."""
        return sum(count for (_, becomes, _), count in self.counts.items() if becomes == PASSES)

    def as_json(self, output: Path | None) -> dict[str, Json]:
        """The answer of `quarantine replay --json`; `output` is the file that was written."""
        codes: dict[str, dict[str, int]] = {}
        for (code, becomes, _), count in sorted(self.counts.items()):
            codes.setdefault(code, {})[becomes] = codes.get(code, {}).get(becomes, 0) + count
        return {
            "rows": self.counts.total(),
            "passes": self.passing,
            "codes": codes,
            "left_later": self.later,
            "output": str(output) if output else None,
        }


def replay(folder: Path, wanted: Wanted, config: Config, target: Path | None) -> Summary:
    """Check the rejected rows again and write those that pass, where any does; OUT is only read.

    Args:
        folder: OUT.
        wanted: which rows.
        config: the recipe, from `config_of`.
        target: a file that is not there yet; None writes nothing.

    Raises:
        UsageError: the target is there already, lies in OUT, or cannot be written.
        UnknownName: a code or source that no row left with.
    """
    found = Summary()
    rows = _counted(outcomes(folder, wanted, config), found)
    if target is None:
        deque(rows, maxlen=0)
    else:
        _write(rows, found, target, folder)
    if not found.counts and not found.later:
        summary(folder, wanted)  # tells a name that nobody left with
    return found


def _write(rows: Iterator[Replayed], found: Summary, target: Path, folder: Path) -> None:
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} is there already; nothing was written", next_step=f"--output {free_name(target)}")
    if target.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{target} lies in {folder}, which is never edited", next_step="--output replayed.jsonl")
    draft = beside(target, "draft")
    with writing(target):
        try:
            with draft.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(json.dumps(row.record, ensure_ascii=False) + "\n" for row in rows if row.record)
            if found.passing:
                draft.rename(target)
        finally:
            draft.unlink(missing_ok=True)


def _counted(rows: Iterator[Replayed], found: Summary) -> Iterator[Replayed]:
    for row in rows:
        if row.becomes:
            found.counts[row.left.code, row.becomes, row.left.source] += 1
            yield row
        else:
            found.later += 1


def outcomes(folder: Path, wanted: Wanted, config: Config) -> Iterator[Replayed]:
    """Every row that left, checked again; `becomes` is empty for those that left behind check."""
    dialects = {name: found["dialects"] for name, found in verify(folder, whole=False)["sources"].items()}
    checks = _Checks(config, dialects)
    for left in left_rows(folder, wanted):
        if left.class_ != "rejected" or left.stage not in STAGES:
            yield Replayed(left, "")
        elif left.stage == "read" and left.code != MENDABLE:
            yield Replayed(left, left.code)  # its bytes are at fault, or were not kept whole
        else:
            yield _replayed(left, checks, config.read.keep_columns)


def _replayed(left: Left, checks: _Checks, keep_columns: tuple[str, ...]) -> Replayed:
    outcome = checks.of(left).outcome(_record_of(left))
    if outcome.checked is None:
        return Replayed(left, outcome.fault.code if outcome.fault else left.code)
    return Replayed(left, PASSES, _written(outcome.checked, left, keep_columns))


def _record_of(left: Left) -> Record:
    value, fault = None, None
    try:
        value = decode(left.raw)
    except Rejected as rejected:
        fault = rejected.with_traceback(None)
    return Record(left.source, left.source_file, left.source_line, left.row, left.raw, value, fault)


def _written(row: Checked, left: Left, keep_columns: tuple[str, ...]) -> dict[str, Json]:
    place = {name: getattr(left, name) for name in ("source", "source_file", "source_line", "row", "code")}
    kept = [*kept_annotations(row, keep_columns), *(name for name in ALWAYS_KEPT if name in row.meta)]
    written = {name: value for name, value in to_row(row, kept).items() if name not in PROVENANCE}
    return {**written, "replayed": recorded_json({**place, "repairs": row.meta.get("repairs", [])})}


class _Checks:
    """How the rows of each source and dialect are checked, made when the first of them comes."""

    def __init__(self, config: Config, dialects: Mapping[str, Mapping[str, str]]) -> None:
        self._config, self._dialects = config, dialects
        self._sources = {source.name: source for source in config.sources}
        self._made: dict[tuple[str, str], RecordCheck] = {}

    def of(self, left: Left) -> RecordCheck:
        """The check of a row's source and dialect: the one that is named, else the one its file was read with."""
        source = self._sources[left.source]
        named = source.dialect
        dialect = named if named != "auto" else self._dialects[left.source][left.source_file]
        key = (left.source, dialect)
        if key not in self._made:
            own = self._config.of(source)
            self._made[key] = RecordCheck(source, dialect, own.read, own.check, own.loss.fractional, Counter())
        return self._made[key]


def config_of(folder: Path, overrides: Sequence[tuple[str, str]], named: Sequence[str] | None) -> Config:
    """The config that OUT was made with, with other options over it.

    Args:
        folder: OUT.
        overrides: dotted path and value of each flag.
        named: repairs of every source, in place of its own; None leaves them.

    Raises:
        StaleError: OUT's `run.json` is gone or cannot be read, or files of OUT are missing or changed.
        UsageError: no prepared folder; an unknown field or repair.
    """
    from turnmill.config import reloaded

    verify(folder, whole=False)
    try:
        stored: dict[str, Any] = msgspec.json.decode((folder / RUN).read_bytes())["config"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as problem:
        what = f"{folder / RUN} cannot be read: it says how the rows were read ({problem})"
        raise StaleError(what, next_step=f"turnmill quarantine export {folder} --to mend.jsonl") from problem
    config = reloaded(stored, overrides)
    if named is not None:
        changed = tuple(dataclasses.replace(source, repairs=tuple(named)) for source in config.sources)
        config = config.model_copy(update={"sources": changed})
    for source in config.sources:
        for name in source.repairs:
            repairs.get(name)
    return config
