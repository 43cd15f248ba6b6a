"""check: records to checked conversations, the rest to quarantine, and a health limit before anything is published."""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from turnmill.contract import check
from turnmill.conversation import Checked, Conversation, Json
from turnmill.dialects import Dialect, Reading, convert, dialects
from turnmill.dialects.canonical import ALWAYS_KEPT
from turnmill.errors import Filtered, HealthError, Rejected
from turnmill.files import canonical, quarantine
from turnmill.files.decode import decode_exactly, lone_surrogate
from turnmill.files.quarantine import Left, LeftClass
from turnmill.files.read import records
from turnmill.files.record import Record, Shard
from turnmill.files.tables import TableWriter
from turnmill.options import Check, Health, Read, Source
from turnmill.repairs import Mending, repairs
from turnmill.repairs.mender import Mender, with_repairs
from turnmill.steps.shards import ShardResult, sums
from turnmill.steps.step import Step
from turnmill.verbs.adapted import adapted
from turnmill.verbs.read import OpenSource, mapping_of

if TYPE_CHECKING:
    from turnmill.config import Config

VERSION = 3
CONVERSATIONS, QUARANTINE = "conversations.parquet", "quarantine.parquet"
MENDABLE = "lone-surrogate"
"""The one fault of the reader that a repair can mend."""


@dataclass(frozen=True, slots=True)
class CheckTask:
    """One shard of a source, and how its rows are read and checked."""

    shard: Shard
    dialect: str
    source: Source
    read: Read
    check: Check
    fractional: bool
    fingerprint: str = ""
    """Of the step, for quarantined rows."""
    adapter: str = ""
    """Name in the registry of sources, whose conversion comes before the dialect."""
    prompts: str = ""
    """File of the prompts that the source withholds."""


Stage = Literal["read", "convert", "repair", "check"]
"""Where a record is until it is a checked conversation."""


class Outcome(NamedTuple):
    """What became of one record: exactly one of `checked` and `fault` is not None."""

    record: Record
    stage: Stage
    checked: Checked | None = None
    fault: Rejected | None = None
    conversation: Conversation | None = None
    """What was rejected, where the record could be converted."""


def kept_columns(read: Read) -> tuple[str, ...]:
    """The annotation columns of the canonical table."""
    return (*read.keep_columns, *(name for name in ALWAYS_KEPT if name not in read.keep_columns))


def tasks_of(opened: OpenSource, config: Config, fingerprint: str = "") -> list[CheckTask]:
    """The shards of a source as tasks."""
    own = config.of(opened.source)
    return [
        CheckTask(
            shard=shard,
            dialect=opened.dialects[shard.name],
            source=opened.source,
            read=own.read,
            check=own.check,
            fractional=own.loss.fractional,
            fingerprint=fingerprint,
        )
        for shard in opened.plan.shards
    ]


def outcomes(task: CheckTask, counts: Counter[str]) -> Iterator[Outcome]:
    """Every record of the task's shard, checked or with its fault.

    Args:
        task: the shard.
        counts: takes `read/<what>` and `repair/<name>`.
    """
    checking = record_check(task, counts)
    for record in records(task.shard, task.read, counts):
        yield checking.outcome(record)


def record_check(task: CheckTask, counts: Counter[str]) -> RecordCheck:
    """What checks the records of a task's shard; `counts` as `outcomes`."""
    dialect = dialects.get(task.dialect)
    if task.adapter:
        dialect = adapted(task.adapter, task.prompts, dialect)
    return RecordCheck(task.source, task.dialect, task.read, task.check, task.fractional, counts, dialect)


class RecordCheck:
    """Converts, mends and checks records of one source and dialect.

    Args:
        source: its mapping and repairs.
        dialect: its name.
        read: how its records were read.
        check: policies of the contract.
        fractional: admit weights other than 0 and 1.
        counts: takes `read/<what>`, and `repair/<name>` once a row that it changed.
        convert: what reads a record, where it is not the dialect alone.
    """

    def __init__(
        self,
        source: Source,
        dialect: str,
        read: Read,
        check: Check,
        fractional: bool,
        counts: Counter[str],
        convert: Dialect | None = None,
    ) -> None:
        self._options = check
        self._counts = counts
        self._dialect = convert or dialects.get(dialect)
        mapping = mapping_of(source)
        self._reading = Reading(mapping, read.think_tags, fractional, read.keep_columns, counts)
        self._mender = Mender(source.repairs, Mending(dialect, mapping, read.think_tags))

    def outcome(self, record: Record) -> Outcome:
        """What became of a record."""
        stage: Stage = "read"
        conversation: Conversation | None = None
        touched: list[str] = []
        try:
            value = self._value(record, touched)
            stage = "convert"
            conversation = self._placed(convert(value, self._dialect, self._reading), record)
            stage = "repair"
            conversation = with_repairs(self._mender.conversation(conversation, touched), touched)
            stage = "check"
            return Outcome(record, stage, checked=check(conversation, self._options))
        except Rejected as fault:
            return Outcome(record, stage, fault=fault.with_traceback(None), conversation=conversation)
        finally:
            for name in touched:
                self._counts[f"repair/{name}"] += 1

    def _value(self, record: Record, touched: list[str]) -> Json:
        """The record's object behind the record repairs, which may mend what the reader refused.

        Raises:
            Rejected: the reader's fault, where no repair mended it.
        """
        value = record.value
        if record.fault is not None:
            if record.fault.code != MENDABLE or not self._mender.mends_records:
                raise record.fault
            value = decode_exactly(record.raw, admit_surrogates=True)
        if value is None or not self._mender.mends_records:
            return value
        mended = self._mender.record(value, touched)
        if record.fault is not None and lone_surrogate(mended) is not None:
            touched.clear()
            raise record.fault
        return mended

    def _placed(self, conversation: Conversation, record: Record) -> Conversation:
        place = {"source_file": record.source_file, "source_line": record.source_line, "row": record.row}
        return msgspec.structs.replace(conversation, source=record.source, meta={**conversation.meta, **place})


def conversation_writer(path: Path, columns: tuple[str, ...]) -> TableWriter[Checked]:
    """A canonical Parquet file."""
    return TableWriter(path, canonical.schema(columns), lambda rows: canonical.to_table(rows, columns))


def left_writer(folder: Path) -> TableWriter[Left]:
    """A folder's file of rows that left."""
    return TableWriter(folder / QUARANTINE, quarantine.schema(), quarantine.to_table)


def run_shard(task: CheckTask, folder: Path) -> ShardResult:
    """Write the shard's checked rows and its quarantine."""
    columns = kept_columns(task.read)
    counts: Counter[str] = Counter()
    fatal: list[str] = []
    with conversation_writer(folder / CONVERSATIONS, columns) as accepted, left_writer(folder) as rejected:
        for record, stage, checked, fault, _ in outcomes(task, counts):
            counts["rows/read"] += 1
            if checked is not None:
                counts["rows/checked"] += 1
                accepted.write(checked)
            elif fault is not None:
                class_ = _class_of(fault)
                counts[f"rows/{class_}"] += 1
                counts[f"{'codes' if class_ == 'rejected' else 'filters'}/{fault.code}"] += 1
                rejected.write(
                    quarantine.from_record(record, fault, stage=stage, config=task.fingerprint, class_=class_)
                )
                if record.fatal:
                    fatal.append(f"{record.source_file}: {fault.message}")
    return ShardResult(dict(counts), {"fatal": fatal})


def _class_of(fault: Rejected) -> LeftClass:
    return "filtered" if isinstance(fault, Filtered) else "rejected"


def step_of(opened: OpenSource, config: Config) -> Step:
    """The recipe of a source's checked rows."""
    source, own = opened.source, config.of(opened.source)
    params: dict[str, Json] = {
        "read": _as_json(own.read, leave_out=("keep_prefix",)),
        "check": _as_json(own.check),
        "dialects": {file: dialects.identity(name) for file, name in opened.dialects.items()},
        "source": {key: getattr(source, key) for key in ("columns", "tags", "roles")},
        "repairs": [repairs.identity(name) for name in source.repairs],
        "fractional": own.loss.fractional,
        "rows": sum(shard.rows for shard in opened.plan.shards),
        "first_row": opened.plan.shards[0].first_row,
        "shards": [[shard.start, shard.end] for shard in opened.plan.shards],
    }
    return Step("check", VERSION, params, opened.plan.inputs)


def _as_json(options: Read | Check, leave_out: Sequence[str] = ()) -> dict[str, Json]:
    stored: dict[str, Json] = msgspec.to_builtins(dataclasses.asdict(options))
    return {key: value for key, value in stored.items() if key not in leave_out}


def check_health(source: str, counts: dict[str, int], health: Health, next_step: str) -> str | None:
    """A warning where a small source lost much; None where all is well.

    Args:
        source: its name.
        counts: `rows/read`, `rows/checked`, `rows/rejected` and `codes/<code>`.
        health: the source's limits.
        next_step: the command that shows the rows.

    Raises:
        HealthError: too many rows rejected, or none accepted.
    """
    read, rejected = counts.get("rows/read", 0), counts.get("rows/rejected", 0)
    codes = {name.removeprefix("codes/"): count for name, count in counts.items() if name.startswith("codes/")}
    listing = "\n".join(f"  {count:>9,}  {code}" for code, count in sorted(codes.items(), key=lambda item: -item[1]))
    share = rejected / read if read else 0.0
    if not counts.get("rows/checked", 0):
        raise HealthError(f"source {source!r}: none of its {read:,} rows was accepted:\n{listing}", next_step=next_step)
    if share <= health.max_rejected:
        return None
    lost = f"source {source!r}: {rejected:,} of {read:,} rows were rejected ({share:.1%})"
    if read < health.min_rows:
        return f"{lost}; under {health.min_rows} rows that only warns:\n{listing}"
    raise HealthError(f"{lost}, over the limit of {health.max_rejected:.1%}:\n{listing}", next_step=next_step)


def show_command(opened: OpenSource) -> str:
    """The command that shows what becomes of a source's rows."""
    return f"turnmill check {shlex.join(opened.source.data)}"


def check_source(opened: OpenSource, config: Config, results: Sequence[ShardResult]) -> None:
    """End the run where a source lost too many rows, or a file of it breaks off.

    Raises:
        HealthError: as `check_health` and `check_fatal`.
    """
    own = config.of(opened.source)
    check_health(opened.source.name, sums(results), own.health, show_command(opened))
    check_fatal([fault for result in results for fault in result.extra["fatal"]], own.read)


def check_fatal(faults: Sequence[str], read: Read) -> None:
    """End the run where a file is broken in the middle, unless its beginning is to be kept.

    Raises:
        HealthError: a broken array or a truncated compressed file.
    """
    if faults and not read.keep_prefix:
        raise HealthError(
            f"{len(faults)} file(s) end before their end: {'; '.join(faults[:3])}; the rows before the fault are good",
            next_step="fetch the file again, or keep what is there: --read.keep_prefix true",
        )
