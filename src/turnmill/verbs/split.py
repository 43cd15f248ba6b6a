"""split: which rows are held out for evaluation; the last word on every checked row's side."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.dedup import Near
from turnmill.errors import UsageError, quote, shell_word
from turnmill.files.tables import batches, write_columns
from turnmill.options import Split
from turnmill.split import MAX_GROUP_SHARE, joined_groups, require_one_amount, split_rows
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.dedup import lost_rows
from turnmill.verbs.filter import read_index
from turnmill.verbs.near import NearFiles, read_known

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from turnmill.config import Config

VERSION = 2
SIDES = "sides.parquet"
NAMED_GROUPS = 10
"""So many of the groups that are too large are named."""
Side = Literal["train", "eval"]


class SplitTask(NamedTuple):
    """All sources at once: a prompt group may span them."""

    indexes: tuple[str, ...]
    duplicates: str
    sources: tuple[str, ...]
    split: Split
    own: dict[str, Split]
    """Of the sources that say for themselves how much is held out."""
    near: NearFiles | None = None
    """Where `split.near` asks for near-duplicates."""
    left: tuple[str, ...] = ()
    """Further files of rows that left behind the filters."""


class _Rows(NamedTuple):
    """The rows that stay, by column; 24 bytes a row."""

    rows: NDArray[np.int64]
    groups: NDArray[np.uint64]
    sources: NDArray[np.int64]


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


def run_shard(task: SplitTask, folder: Path) -> ShardResult:
    """Write the row numbers of those that stay, and which are held out."""
    import numpy as np
    import pyarrow as pa

    found = _staying(task)
    joins = _joins(task)
    own = {task.sources.index(name): split for name, split in task.own.items()}
    keys = _joined(found.groups, joins)
    sides = split_rows(keys, found.sources, task.split, own, task.sources)
    schema = pa.schema([pa.field("row", pa.int64(), nullable=False), pa.field("held_out", pa.bool_(), nullable=False)])
    write_columns(folder / SIDES, {"row": found.rows, "held_out": sides.held_out}, schema)
    counts = {"split/held-out": int(sides.held_out.sum()), "split/groups-too-large": len(sides.oversized)}
    if task.near:
        counts["split/groups-joined"] = sum(key != joined for key, joined in joins.items())
    largest = sorted(sides.oversized.items(), key=lambda item: (-item[1], item[0]))[:NAMED_GROUPS]
    named = {int(found.rows[np.argmax(keys == np.uint64(key))]): size for key, size in largest}
    oversized = [[place, named[row]] for row, place in _places(task, named)]
    return ShardResult(counts, {"rows": len(found.rows), "oversized": oversized})


def _places(task: SplitTask, rows: Collection[int]) -> list[tuple[int, str]]:
    """FILE:LINE of some rows, in order; the index is read again where there are any."""
    indexed = read_index([Path(path) for path in task.indexes]) if rows else ()
    return [(row.row, f"{row.source_file}:{row.source_line}") for row in indexed if row.row in rows]


def _staying(task: SplitTask) -> _Rows:
    """The rows that no step let go."""
    import numpy as np

    lost = lost_rows(Path(task.duplicates)).union(*(lost_rows(Path(path)) for path in task.left))
    order = {name: number for number, name in enumerate(task.sources)}
    rows, groups, sources = array("q"), array("Q"), array("q")
    for path in task.indexes:
        for row, source, group, kept in _read(path, ("row", "source", "group", "kept")):
            if kept and row not in lost:
                rows.append(row)
                groups.append(group)
                sources.append(order[source])
    return _Rows(np.array(rows, dtype=np.int64), np.array(groups, dtype=np.uint64), np.array(sources, dtype=np.int64))


def _joins(task: SplitTask) -> dict[int, int]:
    """Group → the group that near-duplicates make it part of."""
    if task.near is None:
        return {}
    known = read_known(task.near)
    group_of: dict[int, int] = {}
    for path in task.indexes:
        group_of.update((row, group) for row, group in _read(path, ("row", "group")) if row in known.texts)
    return joined_groups(_links(known, group_of))


def _read(path: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Those columns of an index, row by row."""
    for batch in batches(Path(path), columns):
        yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def _joined(groups: NDArray[np.uint64], joins: Mapping[int, int]) -> NDArray[np.uint64]:
    """The groups with each joined one as that which it is part of."""
    import numpy as np

    if not joins:
        return groups
    old = np.array(sorted(joins), dtype=np.uint64)
    new = np.array([joins[key] for key in sorted(joins)], dtype=np.uint64)
    at = np.minimum(np.searchsorted(old, groups), len(old) - 1)
    return np.where(old[at] == groups, new[at], groups)


def _links(known: Near, group_of: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Pairs of groups that near-duplicates stand in; those that leave as duplicates link, too."""
    first: dict[int, int] = {}
    for row, text in known.texts.items():
        yield group_of[first.setdefault(text, row)], group_of[row]
    for pair in known.pairs:
        yield group_of[pair.first], group_of[pair.second]


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
