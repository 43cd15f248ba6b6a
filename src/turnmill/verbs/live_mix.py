"""How many rows of each source an epoch of rows on the fly has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.errors import UsageError, shell_word
from turnmill.files.prepared import PreparedData
from turnmill.mix import Share, Size, require_filled, shares, stored
from turnmill.options import Mix
from turnmill.stream.row_order import OfSource

if TYPE_CHECKING:
    from turnmill.config import Config


def mixed_records(config: Config, sources: Sequence[str], block_rows: Sequence[int]) -> tuple[OfSource, ...] | None:
    """What the weights of a config make of its sources' records; None without weights.

    Args:
        config: of the stream.
        sources: (blocks,) whose each block is; those of a source lie one after another.
        block_rows: (blocks,) rows of each.

    Raises:
        UsageError: weights in tokens, which nobody has counted, or of sources that have no rows.
    """
    weights = {source.name: source.weight for source in config.sources}
    if config.mix == Mix() and all(weight is None for weight in weights.values()):
        return None
    if config.mix.unit != "rows":
        what = f"mix.unit is {config.mix.unit}, and rows on the fly have no counted tokens"
        raise UsageError(f"{what}; expected rows, or data that `prepare` has made", next_step="--mix.unit rows")
    blocks = _blocks_of(sources)
    sizes = {name: Size(_rows_in(blocks.get(name, range(0)), block_rows), 0, 0) for name in weights}
    mixed = shares(sizes, weights, config.mix)
    require_filled(mixed, weights)
    return tuple(OfSource(share, blocks.get(share.source, range(0))) for share in mixed)


def mixed_rows(prepared: PreparedData, files: Sequence[Path], block_rows: Sequence[int]) -> tuple[OfSource, ...] | None:
    """What the mix of a prepared folder makes of its rows: each source is gone through as often as there.

    Args:
        prepared: the folder.
        files: (blocks,) which holds each block.
        block_rows: (blocks,) rows of each.

    Raises:
        UsageError: a file has rows of several sources.
    """
    found = prepared.epochs_recipe["mix"].get("train")
    if found is None:
        return None
    sources = {path: _source_of(path) for path in set(files)}
    blocks = _blocks_of([sources[path] for path in files])
    mixed = []
    for planned in map(stored, found):
        own = blocks.get(planned.source, range(0))
        rows = _rows_in(own, block_rows)
        share = Share(planned.source, Size(rows, 0, 0), planned.weight, round(planned.passes * rows))
        mixed.append(OfSource(share, own))
    return tuple(mixed)


def _blocks_of(sources: Sequence[str]) -> dict[str, range]:
    """Where the blocks of each source lie."""
    found: dict[str, range] = {}
    for name, run in groupby(range(len(sources)), key=sources.__getitem__):
        own = list(run)
        found[name] = range(own[0], own[-1] + 1)
    return found


def _rows_in(blocks: range, block_rows: Sequence[int]) -> int:
    return sum(block_rows[block] for block in blocks)


def _source_of(path: Path) -> str:
    import pyarrow.parquet as pq

    names = pq.read_table(path, columns=["source"]).column("source").unique().to_pylist()
    if len(names) != 1:
        what = f"{path} has rows of {len(names)} sources, which cannot be mixed"
        raise UsageError(what, next_step=f"turnmill census {shell_word(path.parent.parent)}")
    return str(names[0])
