"""split: which rows are held out for evaluation; the last word on every checked row's side."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.errors import UsageError, quote, shell_word
from turnmill.files.tables import write_columns
from turnmill.options import Split
from turnmill.split import require_one_amount, split_rows
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.dedup import lost_rows
from turnmill.verbs.filter import read_index

if TYPE_CHECKING:
    from turnmill.config import Config

VERSION = 1
SIDES = "sides.parquet"
Side = Literal["train", "eval"]


class SplitTask(NamedTuple):
    """All sources at once: a prompt group may span them."""

    indexes: tuple[str, ...]
    duplicates: str
    sources: tuple[str, ...]
    split: Split
    own: dict[str, Split]
    """Of the sources that say for themselves how much is held out."""


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


def step_of(dedup: Step, options: Split, own: Mapping[str, Split]) -> Step:
    """The recipe of the sides; `own` has the sources' own amounts."""
    params: dict[str, Json] = msgspec.to_builtins(dataclasses.asdict(options))
    if own:
        params["own"] = {name: {"fraction": split.fraction, "rows": split.rows} for name, split in own.items()}
    return Step("split", VERSION, params, (dedup.fingerprint,))


def run_shard(task: SplitTask, folder: Path) -> ShardResult:
    """Write the row numbers of those that stay, and which are held out."""
    import numpy as np
    import pyarrow as pa

    lost = lost_rows(Path(task.duplicates))
    order = {name: number for number, name in enumerate(task.sources)}
    rows: list[int] = []
    groups: list[int] = []
    sources: list[int] = []
    for row in read_index([Path(path) for path in task.indexes]):
        if row.kept and row.row not in lost:
            rows.append(row.row)
            groups.append(row.group)
            sources.append(order[row.source])
    own = {order[name]: split for name, split in task.own.items()}
    sides = split_rows(np.array(groups, dtype=np.uint64), sources, task.split, own)
    schema = pa.schema([pa.field("row", pa.int64(), nullable=False), pa.field("held_out", pa.bool_(), nullable=False)])
    write_columns(folder / SIDES, {"row": rows, "held_out": sides.held_out}, schema)
    counts = Counter({"split/held-out": int(sides.held_out.sum()), "split/groups-too-large": len(sides.oversized)})
    largest = sorted(sides.oversized.items(), key=lambda item: -item[1])[:10]
    return ShardResult(dict(counts), {"oversized": [[f"{key:016x}", size] for key, size in largest]})


def read_sides(path: Path, first: int, last: int) -> dict[int, Side]:
    """Row number → side, of the rows from `first` to `last` that stay; reads the row groups that hold them."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, filters=[("row", ">=", first), ("row", "<=", last)])
    rows, held_out = table.column("row").to_pylist(), table.column("held_out").to_pylist()
    return {row: "eval" if is_held_out else "train" for row, is_held_out in zip(rows, held_out, strict=True)}
