"""Rows for a stream that makes examples on the fly: of a prepared folder, or of anything that `read` reads."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnmill.conversation import Checked, Json, canonical_json
from turnmill.errors import Rejected, UsageError, shell_word
from turnmill.files.canonical import readmit, text_sizes
from turnmill.files.parquet import text_bytes
from turnmill.files.prepared import PreparedData, Side
from turnmill.files.quarantine import Left, from_conversation, from_record
from turnmill.files.read import picked, records, undecoded
from turnmill.files.record import Record, Shard
from turnmill.files.tables import group_ranges
from turnmill.options import Filter, Pack
from turnmill.rendered import Example
from turnmill.stream.row_order import Cut
from turnmill.stream.row_stream import Picked, RowStream
from turnmill.verbs import check, filter, tokenize
from turnmill.verbs.check import CheckTask, RecordCheck
from turnmill.verbs.live_mix import mixed_records, mixed_rows
from turnmill.verbs.prepare import recipe_params
from turnmill.verbs.read import open_sources
from turnmill.verbs.recipes import prepared_folder, stored_recipes
from turnmill.verbs.tokenize import Recipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from turnmill.config import Config, Origins

SHARD_BYTES = 1024 * 1024
"""A block of raw data: small, for it is gone through for each row that is picked there."""
MAX_WHOLE_BYTES = 64 * 1024 * 1024
"""Of a file that cannot be cut into blocks."""


@dataclass(frozen=True)
class StoredRows:
    """Rows of a prepared folder, a block each row group; they were checked and filtered before."""

    groups: tuple[tuple[Path, int], ...]
    """File, and number of the row group."""
    block_rows: tuple[int, ...]
    identity: str

    def sizes(self, block: int) -> NDArray[np.int64]:
        """(rows,) bytes of their texts."""
        import numpy as np

        return np.array(text_sizes(self._read(block, ["messages", "chat_template_kwargs"])), dtype=np.int64)

    def picked(self, block: int, places: Sequence[int]) -> Iterator[Picked]:
        """The rows at some places of a block, in order."""
        table = self._read(block).take(places)
        ids = table.column("id").to_pylist()
        yield from (Picked(row, row_id) for row, row_id in zip(readmit(table), ids, strict=True))

    def _read(self, block: int, columns: list[str] | None = None) -> Any:
        import pyarrow.parquet as pq

        path, group = self.groups[block]
        with pq.ParquetFile(path) as stored:
            return stored.read_row_group(group, columns=columns, use_threads=False)


@dataclass(frozen=True)
class RecordRows:
    """Rows of raw data, a block each shard; they are checked and filtered as they are picked."""

    tasks: tuple[CheckTask, ...]
    filters: Mapping[str, Filter]
    """Settled, by source."""
    identity: str

    @property
    def block_rows(self) -> tuple[int, ...]:
        """Records of each shard, bad ones too."""
        return tuple(task.shard.rows for task in self.tasks)

    def sizes(self, block: int) -> NDArray[np.int64]:
        """(rows,) bytes of their records."""
        import numpy as np

        task = self.tasks[block]
        if task.shard.layout == "parquet":
            found = text_bytes(task.shard)
        elif task.shard.session:
            found = [len(record.raw) for record in records(task.shard, task.read)]
        else:
            found = [len(piece.raw) for piece in undecoded(task.shard, task.read)]
        return np.array(found + [0] * (task.shard.rows - len(found)), dtype=np.int64)

    def picked(self, block: int, places: Sequence[int]) -> Iterator[Picked]:
        """The rows at some places of a block, in order.

        Raises:
            HealthError: the file is broken, and its beginning is not to be kept (`read.keep_prefix`).
        """
        task = self.tasks[block]
        checks = check.record_check(task, Counter())
        for record in picked(task.shard, task.read, places):
            if record.fatal and record.fault is not None:
                check.check_fatal([f"{record.source_file}: {record.fault.message}"], task.read)
            yield self._settled(record, checks, self.filters[task.source.name])

    def _settled(self, record: Record, checks: RecordCheck, filters: Filter) -> Picked:
        outcome = checks.outcome(record)
        row = outcome.checked
        if row is None:
            fault = outcome.fault or Rejected("conversion-failed", "the record gave no conversation")
            return Picked(None, "", from_record(record, fault, stage=outcome.stage, config=self.identity))
        leaves = filter.verdict(row, filters)
        if leaves is None:
            return Picked(row, row.id)
        class_, fault = leaves
        return Picked(None, row.id, from_conversation(row, fault, stage="filter", config=self.identity, class_=class_))


@dataclass(frozen=True)
class LineOf:
    """The row pipeline, with the recipe of each row's source."""

    recipes: Mapping[str, Recipe]
    identity: str
    accelerate: bool = True

    def __call__(self, rows: Sequence[Checked], ids: Sequence[str]) -> list[list[Example] | Left]:
        """Each row's examples, or why it has none."""
        made: list[list[Example] | Left] = [[] for _ in rows]
        for name, recipe in self.recipes.items():
            own = [place for place, row in enumerate(rows) if row.source == name]
            if own:
                line = tokenize.line_of(recipe, accelerate=self.accelerate)
                line.clear()
                found = line.run([rows[place] for place in own], recipe, [ids[place] for place in own])
                for place, one in zip(own, found, strict=True):
                    examples = [part.example for part in one.parts]
                    made[place] = examples or tokenize.left_of(one, self.identity)
        return made


def open_rows(
    config: Config, origins: Origins, cut: Cut, side: Side = "train", on_left: Callable[[Left], None] | None = None
) -> RowStream:
    """A stream over the rows of the config's sources.

    Args:
        config: its sources are raw data, or one prepared folder.
        origins: what of the config was typed: over a prepared folder's own recipe.
        cut: how batches are cut; seed and order are those of the config, or of the folder.
        side: of a prepared folder, whose rows.
        on_left: is given every row that gives no example.

    Raises:
        UsageError: nothing to read, no model, weights that cannot be kept, or a file that rows cannot be picked from.
    """
    folder = prepared_folder(config)
    rows: StoredRows | RecordRows
    if folder is not None:
        prepared = PreparedData(folder, whole=False)
        recipes, (pack, seed) = stored_recipes(folder, config, origins), _order_of(prepared, config, origins)
        rows = _stored_rows(prepared, side)
        files = [path for path, _ in rows.groups]
        mixed = mixed_rows(prepared, files, rows.block_rows) if side == "train" else None
    else:
        recipes = {source.name: tokenize.recipe_of(config, source) for source in config.sources}
        rows, pack, seed = _record_rows(config), config.pack, config.seed
        mixed = mixed_records(config, [task.source.name for task in rows.tasks], rows.block_rows)
    line = _line_of(recipes, config)
    return RowStream(rows, line, cut._replace(seed=seed, is_kept=pack.order == "kept"), on_left, mixed)


def _order_of(prepared: PreparedData, config: Config, origins: Origins) -> tuple[Pack, int]:
    """`pack` and `seed` of a prepared folder, with what was typed now over them.

    Raises:
        UsageError: its order is a curriculum's.
    """
    said = prepared.epochs_recipe
    pack, seed = msgspec.convert(said["pack"], Pack), said["seed"]
    if origins.get("pack.order") == "flag":
        pack = dataclasses.replace(pack, order=config.pack.order)
    elif said["ordered"]:
        what = f"{prepared.folder} holds a curriculum, which is an order of its examples and not of its rows"
        raise UsageError(what, next_step="PreparedStream(OUT), or options={'pack.order': 'random'}")
    return pack, config.seed if origins.get("seed") == "flag" else seed


def _stored_rows(prepared: PreparedData, side: Side) -> StoredRows:
    """The conversations of one side, by row group."""
    found = [(path, groups) for path in prepared.conversation_files(side) for groups in group_ranges(path, most_rows=1)]
    identity = {"data": prepared.manifest["fingerprint"], "side": side}
    return StoredRows(
        tuple((path, groups.first) for path, groups in found),
        tuple(groups.rows for _, groups in found),
        _hash_of(identity),
    )


def _record_rows(config: Config) -> RecordRows:
    """The records of the config's sources, by shard."""
    if not config.sources:
        raise UsageError("no data given: expected files, or `sources` in a config")
    filters = {source.name: filter.settled(config.of(source).filter) for source in config.sources}
    tasks: list[CheckTask] = []
    steps: list[Json] = []
    for opened in open_sources(config, shard_bytes=SHARD_BYTES):
        for shard in opened.plan.shards:
            require_pickable(shard)
        tasks += check.tasks_of(opened, config)
        step = filter.step_of(check.step_of(opened, config), filters[opened.source.name], None)
        steps.append(step.fingerprint)
    return RecordRows(tuple(tasks), filters, _hash_of(steps))


def require_pickable(shard: Shard) -> None:
    """Refuse a large file that is read from its beginning whatever row is wanted.

    Raises:
        UsageError: it is compressed, or one JSON array.
    """
    is_cut = shard.compression == "none" and shard.layout in ("lines", "parquet") and not shard.session
    if not is_cut and shard.file_bytes > MAX_WHOLE_BYTES:
        what = (
            f"{shard.path}: rows cannot be picked from {shard.file_bytes:,} bytes of {shard.compression} {shard.layout}"
        )
        raise UsageError(
            f"{what}; expected JSON lines or Parquet that is not compressed as a whole",
            next_step=f"turnmill convert {shell_word(shard.path)} --help",
        )


def _line_of(recipes: dict[str, Recipe], config: Config) -> LineOf:
    """The line of the recipes, once each template is proven.

    Raises:
        UsageError: no model, or one that cannot be used.
    """
    params: dict[str, Json] = {}
    for name, recipe in recipes.items():
        if recipe.model.name_or_path is None:
            message = "no model given: a stream needs its tokenizer and template"
            raise UsageError(message, next_step="model='smollm2'")
        model = tokenize.line_of(recipe).model
        if not recipe.max_tokens:
            recipes[name] = dataclasses.replace(recipe, max_tokens=tokenize.max_tokens_of(recipe.fit, model))
        params[name] = {"version": tokenize.VERSION, **recipe_params(model, recipes[name])}
    return LineOf(recipes, _hash_of(params), config.accelerate)


def _hash_of(value: Json) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()
