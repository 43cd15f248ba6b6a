"""check: records to checked conversations, the rest to quarantine, and a health limit before anything is published."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from turnmill.contract import check
from turnmill.conversation import Checked, Conversation, Json
from turnmill.dialects import Reading, convert, dialects
from turnmill.errors import HealthError, Rejected
from turnmill.files import canonical, quarantine
from turnmill.files.quarantine import Left
from turnmill.files.read import records
from turnmill.files.record import Record, Shard
from turnmill.files.tables import TableWriter
from turnmill.options import Check, Health, Read, Source
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.read import OpenSource, mapping_of

if TYPE_CHECKING:
    from turnmill.config import Config

VERSION = 1
CONVERSATIONS, QUARANTINE = "conversations.parquet", "quarantine.parquet"
ALWAYS_KEPT = ("source_train_turns",)
"""Annotations that are kept without being asked for."""


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


class Outcome(NamedTuple):
    """What became of one record: exactly one of `checked` and `fault` is not None."""

    record: Record
    stage: str
    checked: Checked | None = None
    fault: Rejected | None = None
    conversation: Conversation | None = None
    """What was rejected, where the record could be converted."""


def kept_columns(read: Read) -> tuple[str, ...]:
    """The annotation columns of the canonical table."""
    return (*read.keep_columns, *(name for name in ALWAYS_KEPT if name not in read.keep_columns))


def tasks_of(opened: OpenSource, config: Config, fingerprint: str = "") -> list[CheckTask]:
    """The shards of a source as tasks."""
    return [
        CheckTask(
            shard=shard,
            dialect=opened.dialects[shard.name],
            source=opened.source,
            read=config.read,
            check=config.check,
            fractional=config.loss_of(opened.source).fractional,
            fingerprint=fingerprint,
        )
        for shard in opened.plan.shards
    ]


def outcomes(task: CheckTask, counts: Counter[str]) -> Iterator[Outcome]:
    """Every record of the task's shard, checked or with its fault; `counts` takes `read/<what>`."""
    reading = Reading(
        mapping=mapping_of(task.source),
        think_tags=task.read.think_tags,
        fractional=task.fractional,
        keep_columns=task.read.keep_columns,
        counts=counts,
    )
    read = dialects.get(task.dialect)
    for record in islice(records(task.shard, task.read, counts), task.shard.rows):
        if record.fault is not None:
            yield Outcome(record, "read", fault=record.fault)
            continue
        stage = "convert"
        conversation: Conversation | None = None
        try:
            conversation = convert(record.value, read, reading)
            stage = "check"
            place = {"source_file": record.source_file, "source_line": record.source_line, "row": record.row}
            conversation = msgspec.structs.replace(
                conversation, source=record.source, meta={**conversation.meta, **place}
            )
            yield Outcome(record, stage, checked=check(conversation, task.check))
        except Rejected as fault:
            yield Outcome(record, stage, fault=fault, conversation=conversation)


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
                counts["rows/rejected"] += 1
                counts[f"codes/{fault.code}"] += 1
                rejected.write(quarantine.from_record(record, fault, stage=stage, config=task.fingerprint))
                if record.fatal:
                    fatal.append(f"{record.source_file}: {fault.message}")
    return ShardResult(dict(counts), {"fatal": fatal})


def step_of(opened: OpenSource, config: Config) -> Step:
    """The recipe of a source's checked rows."""
    source = opened.source
    params: dict[str, Json] = {
        "read": _as_json(config.read, leave_out=("keep_prefix",)),
        "check": _as_json(config.check),
        "dialects": opened.dialects,
        "source": {key: getattr(source, key) for key in ("columns", "tags", "roles")},
        "fractional": config.loss_of(source).fractional,
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
