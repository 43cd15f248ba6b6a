"""split: which rows are held out for evaluation; the last word on every checked row's side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.errors import UsageError, quote, shell_word
from turnmill.files.tables import GROUP_OF_COLUMNS, RegroupedWriter
from turnmill.options import Split
from turnmill.split import MAX_GROUP_SHARE, require_one_amount
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.built import Builder, Built
from turnmill.verbs.held_out import Found, SplitTask, require_asked, sides, sides_of
from turnmill.verbs.near import NearFiles
from turnmill.verbs.partitions import in_folder, in_steps, partitions_of, rows_of

if TYPE_CHECKING:
    from turnmill.config import Config

VERSION = 2
SIDES = "sides.parquet"
Side = Literal["train", "eval"]


class SidesTask(NamedTuple):
    """What the stages found."""

    task: SplitTask
    found: Found


def require_usable(options: Split, kept_columns: Sequence[str]) -> None:
    """Refuse a split that cannot be made, before any row is read.

    Raises:
        UsageError: see `require_one_amount`; or groups are named by a column that is not kept: each row would be one.
    """
    require_one_amount(options)
    if options.group_field is not None and options.group_field not in kept_columns:
        what = f"split.group_field is {quote(options.group_field)}; expected a column that read.keep_columns names"
        raise UsageError(what, next_step=f"--read.keep_columns {shell_word(f'[{options.group_field}]')}")


def own_splits(config: Config) -> dict[str, Split]:
    """Source → its split, of those that say for themselves how much is held out."""
    return {
        source.name: config.of(source).split for source in config.sources if source.split.keys() & {"fraction", "rows"}
    }


def step_of(before: Sequence[Step], options: Split, own: Mapping[str, Split], near: NearFiles | None = None) -> Step:
    """The recipe of the sides; `own` has the sources' own amounts, `before` are the last steps that let rows go."""
    params: dict[str, Json] = msgspec.to_builtins(dataclasses.asdict(options))
    if own:
        params["own"] = {name: {"fraction": split.fraction, "rows": split.rows} for name, split in own.items()}
    inputs = [step.fingerprint for step in before] + ([near.fingerprint] if near else [])
    return Step("split", VERSION, params, tuple(inputs))


def build(builder: Builder, step: Step, task: SplitTask) -> Built:
    """The sides, found by partition where so many rows need more than one, else by one task; the bytes are the same.

    Args:
        builder: what builds steps.
        step: of `step_of`.
        task: all of it.
    """
    if not builder.has(step) and (count := builder.partitions or partitions_of(rows_of(task.indexes))) > 1:
        task = task._replace(partitions=count)
        found = sides_of(in_steps(builder), task, step.inputs)
        return builder.build(step, [SidesTask(task, found)], merge_shard)
    return builder.build(step, [task], run_shard)


def run_shard(task: SplitTask, folder: Path) -> ShardResult:
    """Write the row numbers of those that stay, and which are held out, in one process, a partition after the other."""
    task = task._replace(partitions=task.partitions or partitions_of(rows_of(task.indexes)))
    with TemporaryDirectory(prefix=".stages.", dir=folder) as scratch:
        return merge_shard(SidesTask(task, sides_of(in_folder(Path(scratch)), task, ())), folder)


def merge_shard(given: SidesTask, folder: Path) -> ShardResult:
    """Write the row numbers of those that stay, and which are held out.

    Raises:
        UsageError: there are not so many rows to hold out.
    """
    import pyarrow as pa

    task, found = given
    require_asked(task, found)
    schema = pa.schema([pa.field("row", pa.int64(), nullable=False), pa.field("held_out", pa.bool_(), nullable=False)])
    out = RegroupedWriter(folder / SIDES, schema, GROUP_OF_COLUMNS)
    staying = held_out = 0
    for rows, held in sides(found):
        out.write(pa.record_batch([pa.array(rows), pa.array(held)], schema=schema))
        staying += len(rows)
        held_out += int(held.sum())
    out.close()
    counts = {"split/held-out": held_out, "split/groups-too-large": found.oversized}
    if found.joined is not None:
        counts["split/groups-joined"] = found.joined
    named = {group.row: group.size for group in found.named}
    oversized = [[place, named[row]] for row, place in _places(task.indexes, sorted(named))]
    return ShardResult(counts, {"rows": staying, "oversized": oversized})


def _places(indexes: Sequence[str], rows: Sequence[int]) -> Iterator[tuple[int, str]]:
    """FILE:LINE of some rows, in order; the index is looked at again where there are any."""
    import pyarrow.parquet as pq

    for path in indexes if rows else ():
        table = pq.read_table(path, columns=["row", "source_file", "source_line"], filters=[("row", "in", rows)])
        for found in table.to_pylist():
            yield found["row"], f"{found['source_file']}:{found['source_line']}"


def warnings(result: ShardResult, options: Split) -> list[str]:
    """What a person should know of the sides."""
    said = [
        f"split: {size:,} of {result.extra['rows']:,} rows are one group, that of {place}; a group of over "
        f"{MAX_GROUP_SHARE:.0%} of the rows always trains"
        for place, size in result.extra["oversized"]
    ]
    if options.fraction and not result.counters["split/held-out"]:
        said.append(f"split.fraction {options.fraction:g} holds out none of {result.extra['rows']:,} rows")
    return said


def read_sides(path: Path, first: int, last: int) -> dict[int, Side]:
    """Row number → side, of the rows from `first` to `last` that stay; reads the row groups that hold them."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, filters=[("row", ">=", first), ("row", "<=", last)])
    rows, held_out = table.column("row").to_pylist(), table.column("held_out").to_pylist()
    return {row: "eval" if is_held_out else "train" for row, is_held_out in zip(rows, held_out, strict=True)}
