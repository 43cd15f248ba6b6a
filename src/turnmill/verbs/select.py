"""select: which of the tokenized rows a model learns from, decided over all sources at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.errors import HealthError, UsageError, quote, shell_word
from turnmill.files.arrays import Column, in_files
from turnmill.files.examples import mapped, token_counts
from turnmill.files.selection import SELECTION
from turnmill.files.tables import GROUP_OF_COLUMNS, RegroupedWriter
from turnmill.options import Select
from turnmill.report.selection import pool_facts
from turnmill.selection import (
    ALL,
    CODES,
    NOT_SELECTED,
    Groups,
    Room,
    Scored,
    Selected,
    needs_scores,
    outliers,
    perplexity,
    select,
)
from turnmill.selection import require_usable as require_usable_selection
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.built import Builder, Built
from turnmill.verbs.score import scores_file
from turnmill.verbs.split import Side

if TYPE_CHECKING:
    import pyarrow as pa

    from turnmill.config import Config

VERSION = 2
MANY_OUTLIERS = 0.2
"""Share of the pool."""
UNKNOWN = -1
"""Familiarity of a row that was not in the scored pool."""
NO_GROUP = "<none>"
"""Group of the rows whose column is empty."""

COLUMNS = {
    "trained_tokens": np.int64, "tokens": np.int64, "sum_nll": np.float64, "full_nll": np.float64,
    "full_tokens": np.int64, "predicted": np.int64,
    "shard": np.int32, "number": np.int64, "examples": np.int32, "group": np.int32,
}  # fmt: skip
"""What is known of a row, and as which numbers."""


class Shard(NamedTuple):
    """One tokenized shard."""

    source: str
    folder: str
    scores: str | None
    """Folder of its scores, None where nothing was scored."""


class SelectTask(NamedTuple):
    """All sources at once: the buckets are of the whole pool."""

    shards: tuple[Shard, ...]
    select: Select
    seed: int


def is_on(config: Config) -> bool:
    """Whether any row may leave here."""
    options = config.select
    return options.rows is not None or options.tokens is not None or config.score.on or needs_scores(options)


def require_usable(config: Config, kept_columns: Sequence[str]) -> None:
    """Refuse a selection that cannot be made, before any row is read.

    Raises:
        UsageError: as `turnmill.selection.require_usable`, or groups by a column that is not kept.
    """
    options = config.select
    require_usable_selection(options)
    if options.group_field is not None and options.group_field not in kept_columns:
        what = f"select.group_field is {quote(options.group_field)}; expected a column that read.keep_columns names"
        raise UsageError(what, next_step=f"--read.keep_columns {shell_word(f'[{options.group_field}]')}")


def step_of(inputs: Sequence[Step], options: Select, seed: int) -> Step:
    """The recipe of the decision; the inputs are tokenized rows, and their scores where there are any."""
    params: dict[str, Json] = {**msgspec.to_builtins(dataclasses.asdict(options)), "seed": seed}
    return Step("select", VERSION, params, tuple(step.fingerprint for step in inputs))


def build(builder: Builder, config: Config, tokenized: Mapping[str, Built], scores: Mapping[str, Built]) -> Built:
    """The decision over all sources.

    Raises:
        HealthError: no row is left.
    """
    inputs = [built.step for built in (*tokenized.values(), *scores.values())]
    shards = [
        Shard(name, str(folder), str(scores[name].file("")[number]) if scores else None)
        for name, built in tokenized.items()
        for number, folder in enumerate(built.file(""))
    ]
    task = SelectTask(tuple(shards), config.select, config.seed)
    built = builder.build(step_of(inputs, config.select, config.seed), [task], run_shard)
    if not built.counters["select/kept"] and built.counters["select/pool"]:
        raise HealthError(nothing_left(built.results[0]), next_step="--select.max_perplexity 0")
    return built


class Rows(NamedTuple):
    """The rows of one side in the order of reading: an entry each."""

    scored: Scored
    shard: NDArray[np.int32]
    number: NDArray[np.int64]
    """Of the row in its shard's file of that side."""
    examples: NDArray[np.int32]
    """Training examples of the row."""
    groups: Groups


def run_shard(task: SelectTask, folder: Path) -> ShardResult:
    """Write of every row of both sides whether it stays, why not, its rank, and its scores."""
    room = Room(in_files(folder))
    train, held_out = _rows(task, "train", folder), _rows(task, "eval", folder)
    chosen = select(train.scored, task.select, task.seed, train.groups, room)
    is_scored = task.shards[0].scores is not None
    writer = RegroupedWriter(folder / SELECTION, _schema(), GROUP_OF_COLUMNS)
    for part in room.parts(train.scored.rows):
        writer.write(_batch("train", train, part, _decided(chosen, part, is_scored=is_scored)))
    for part in room.parts(held_out.scored.rows):
        writer.write(_batch("eval", held_out, part, _bounded(held_out.scored.part(part), task, is_scored=is_scored)))
    writer.close()
    facts = pool_facts(train.scored, chosen, train.groups, is_scored=is_scored, room=room)
    counts = {
        "select/pool": train.scored.rows,
        "select/kept": facts["selected"]["rows"],
        "select/control": facts["control"]["rows"] if "control" in facts else 0,
    }
    return ShardResult(counts, {"facts": facts, "short": chosen.short})


def _schema() -> pa.Schema:
    import pyarrow as pa

    fields = {
        "side": pa.string(),
        "shard": pa.int32(),
        "number": pa.int64(),
        "examples": pa.int32(),
        "code": pa.int8(),
        "rank": pa.int64(),
        "in_control": pa.bool_(),
        "familiarity": pa.int8(),
        "flow_weight": pa.float64(),
        "tokens": pa.int64(),
        "trained_tokens": pa.int64(),
        "sum_nll": pa.float64(),
        "mean_nll": pa.float64(),
        "perplexity": pa.float64(),
    }
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])


def _batch(side: Side, rows: Rows, part: slice, decided: Mapping[str, NDArray[Any]]) -> pa.RecordBatch:
    """Some neighbouring rows of a side with what was decided of them."""
    import pyarrow as pa

    scored = rows.scored.part(part)
    columns = {
        "side": np.full(scored.rows, side, dtype=object),
        **{name: getattr(rows, name)[part] for name in ("shard", "number", "examples")},
        **decided,
        **{name: getattr(scored, name) for name in ("tokens", "trained_tokens", "sum_nll", "mean_nll")},
        "perplexity": perplexity(scored.mean_nll),
    }
    arrays = [pa.array(columns[field.name], type=field.type) for field in _schema()]
    return pa.RecordBatch.from_arrays(arrays, schema=_schema())


def _decided(chosen: Selected, part: slice, *, is_scored: bool) -> dict[str, NDArray[Any]]:
    familiarity = chosen.familiarity[part]
    return {
        "code": chosen.codes[part],
        "rank": chosen.rank[part],
        "in_control": chosen.in_control[part],
        "familiarity": familiarity if is_scored else np.full_like(familiarity, UNKNOWN),
        "flow_weight": chosen.flow_weight[part],
    }


def _bounded(scored: Scored, task: SelectTask, *, is_scored: bool) -> dict[str, NDArray[Any]]:
    """What is decided of held-out rows: they only have to lie within the bounds."""
    return {
        "code": outliers(scored, task.select) if is_scored else np.zeros(scored.rows, np.int8),
        "rank": np.full(scored.rows, -1, np.int64),
        "in_control": np.zeros(scored.rows, np.bool_),
        "familiarity": np.full(scored.rows, UNKNOWN, np.int8),
        "flow_weight": np.zeros(scored.rows),
    }


def _rows(task: SelectTask, side: Side, folder: Path) -> Rows:
    """A side's rows of all shards, in files that are gone with them: its examples' values summed by row."""
    numbers: dict[str, int] = {}
    with ExitStack() as stack:
        columns = {name: stack.enter_context(Column(folder, kind)) for name, kind in COLUMNS.items()}
        for number, shard in enumerate(task.shards):
            found = _shard_rows(shard, number, side, task.select.group_field)
            of = np.array([numbers.setdefault(name, len(numbers)) for name in found.groups.names], np.int32)
            values = {**found.scored._asdict(), **found._asdict(), "group": of[found.groups.of]}
            for name, column in columns.items():
                column.write(values[name])
        whole = {name: column.whole() for name, column in columns.items()}
    scored = Scored(**{name: whole[name] for name in Scored._fields})
    return Rows(scored, whole["shard"], whole["number"], whole["examples"], Groups(list(numbers), whole["group"]))


def _shard_rows(shard: Shard, number: int, side: Side, group_field: str | None) -> Rows:
    import pyarrow.parquet as pq

    examples = example_sizes(Path(shard.folder, f"{side}.arrow"))
    starts = np.flatnonzero(examples["part"] == 0)
    columns: dict[str, NDArray[Any]] = {"trained_tokens": examples["trained_tokens"], "tokens": examples["tokens"]}
    names = ("sum_nll", "full_nll", "full_tokens", "predicted")
    if shard.scores is None:
        columns |= {name: np.full(len(examples["part"]), np.nan if "nll" in name else 0) for name in names}
    else:
        table = pq.read_table(Path(shard.scores, scores_file(side)), columns=list(names))
        columns |= {name: table.column(name).to_numpy() for name in names}
    sums = {name: np.add.reduceat(values, starts) if len(starts) else values[:0] for name, values in columns.items()}
    scored = Scored(**{name: sums[name].astype(float if "nll" in name else np.int64) for name in Scored._fields})
    counts = np.diff(np.append(starts, len(examples["part"]))).astype(np.int32)
    groups = Groups([shard.source], np.zeros(len(starts), np.int32))
    if group_field is not None:
        groups = _groups_of(Path(shard.folder, f"{side}.parquet"), group_field)
    return Rows(scored, np.full(len(starts), number, np.int32), np.arange(len(starts)), counts, groups)


def _groups_of(path: Path, column: str) -> Groups:
    """The values of a kept column, which is JSON: a text is its own name, any other value its JSON."""
    import pyarrow.parquet as pq

    values = pq.read_table(path, columns=[column]).column(column).to_pylist()
    texts = [NO_GROUP if value is None else _named(value) for value in values]
    names = list(dict.fromkeys(texts))
    number = {name: place for place, name in enumerate(names)}
    return Groups(names, np.array([number[text] for text in texts], np.int32))


def _named(value: str) -> str:
    decoded = msgspec.json.decode(value)
    return decoded if isinstance(decoded, str) else value


def example_sizes(path: Path) -> dict[str, NDArray[np.int64]]:
    """Part, tokens and trained tokens of every example of a file."""
    parts: dict[str, list[NDArray[np.int64]]] = {"part": [], "tokens": [], "trained_tokens": []}
    for batch in mapped(path):
        parts["part"].append(batch.column("part").to_numpy())
        tokens, trained = token_counts(batch)
        parts["tokens"].append(tokens)
        parts["trained_tokens"].append(trained)
    return {name: np.concatenate([np.empty(0, np.int64), *found]) for name, found in parts.items()}


def nothing_left(result: ShardResult) -> str:
    """What to say where every row left."""
    left = ", ".join(f"{count:,} {code}" for code, count in result.extra["facts"]["left"].items())
    return f"no row is left to select from: {left}"


def warnings_of(result: ShardResult, options: Select) -> list[str]:
    """What a person should know: budgets beyond what there is, and bounds that take away much of the pool."""
    facts = result.extra["facts"]
    lost = {code: count for code, count in facts["left"].items() if code != CODES[NOT_SELECTED]}
    found = []
    if sum(lost.values()) > MANY_OUTLIERS * facts["pool"]["rows"]:
        listed = ", ".join(f"{count:,} {code}" for code, count in lost.items())
        found.append(
            f"select: {sum(lost.values()):,} of {facts['pool']['rows']:,} rows lie outside the bounds ({listed}); "
            "for data far from what the model knows: --select.max_perplexity 0"
        )
    return found + _shortfalls(result, options)


def _shortfalls(result: ShardResult, options: Select) -> list[str]:
    unit = "rows" if options.tokens is None else "trained tokens"
    return [
        f"select: the budget of {name!r} is {lacking:,} {unit} more than there are; all are taken"
        if name != ALL
        else f"select: the budget is {lacking:,} {unit} more than there are; all are taken"
        for name, lacking in result.extra["short"].items()
    ]
