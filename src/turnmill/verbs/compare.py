"""compare: two sets of training rows side by side: sources, lengths, kinds, perplexity."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
from turnmill.files.examples import Examples, run_sizes
from turnmill.files.prepared import PreparedData, Side
from turnmill.files.selection import SELECTION
from turnmill.rendered import KINDS
from turnmill.report.census import percentiles
from turnmill.report.selection import distribution


class Named(NamedTuple):
    """A side of a prepared folder, `OUT` or `OUT#control`."""

    folder: Path
    side: Side

    def __str__(self) -> str:
        return str(self.folder) if self.side == "train" else f"{self.folder}#{self.side}"


def named(text: str) -> Named:
    """The side that was typed.

    Raises:
        UsageError: no such side.
    """
    folder, mark, side = text.rpartition("#")
    if not mark or Path(text).is_dir():
        return Named(Path(text), "train")
    if side not in get_args(Side):
        known = ", ".join(get_args(Side))
        raise UsageError(f"no side {side!r} of {folder}; expected one of {known}", next_step=f"ls {shell_word(folder)}")
    return Named(Path(folder), next(name for name in get_args(Side) if name == side))


def pair(first: str, second: str | None) -> tuple[Named, Named]:
    """What is compared: a selection with its own control, where only one folder was given."""
    one = named(first)
    return one, Named(one.folder, "control") if second is None else named(second)


def compare(first: Named, second: Named) -> dict[str, Json]:
    """`{"a": facts, "b": facts, "shared_rows": n}` of two sides.

    Raises:
        UsageError: not a prepared folder, or one without such a side.
        StaleError: a file is missing or changed.
    """
    ours, theirs = _open(first), _open(second)
    ids = [Counter(_row_ids(examples)) for examples in (ours[1], theirs[1])]
    return {
        "a": {"name": str(first), **_facts(*ours, first.side)},
        "b": {"name": str(second), **_facts(*theirs, second.side)},
        "shared_rows": sum((ids[0] & ids[1]).values()),
    }


def _open(which: Named) -> tuple[PreparedData, Examples]:
    prepared = PreparedData(which.folder)
    examples = prepared.examples(which.side)
    if not len(examples):
        what = f"{which.folder} holds no rows of {which.side!r}"
        needs = "a control is drawn beside any strategy but `random`" if which.side == "control" else ""
        raise UsageError(f"{what}; {needs}" if needs else what, next_step="turnmill compare OUT OTHER")
    return prepared, examples


def _row_ids(examples: Examples) -> list[str]:
    """One id a row: of its first part."""
    return [
        row_id
        for batch in examples.batches()
        for row_id, part in zip(batch.column("row_id").to_pylist(), batch.column("part").to_pylist(), strict=True)
        if part == 0
    ]


def _facts(prepared: PreparedData, examples: Examples, side: Side) -> dict[str, Any]:
    sources: Counter[str] = Counter()
    rows = 0
    kinds = np.zeros(len(KINDS), dtype=np.int64)
    trained = np.zeros(len(KINDS), dtype=np.int64)
    for batch in examples.batches():
        is_first = batch.column("part").to_numpy() == 0
        rows += int(is_first.sum())
        sources.update(np.array(batch.column("source").to_pylist(), dtype=object)[is_first].tolist())
        sizes, numbers = run_sizes(batch), batch.column("run_kinds").flatten().to_numpy()
        trains = batch.column("run_weights").flatten().to_numpy() > 0
        kinds += np.bincount(numbers, weights=sizes, minlength=len(KINDS)).astype(np.int64)
        trained += np.bincount(numbers, weights=sizes * trains, minlength=len(KINDS)).astype(np.int64)
    return {
        "rows": rows,
        "examples": len(examples),
        "tokens": int(kinds.sum()),
        "trained_tokens": int(trained.sum()),
        "sources": dict(sources.most_common()),
        "trained_by_kind": {kind: int(count) for kind, count in zip(KINDS, trained, strict=True) if count},
        "lengths": percentiles(examples.lengths().tolist()),
        "perplexity": distribution(_perplexities(prepared, side)),
    }


def _perplexities(prepared: PreparedData, side: Side) -> NDArray[np.float64]:
    """(rows,) of a side, infinite where a row has none; none where nothing was scored."""
    import pyarrow.parquet as pq

    if not any(entry["path"] == SELECTION for entry in prepared.manifest["files"]):
        return np.empty(0)
    chosen = ("in_control", "=", True) if side == "control" else ("code", "=", 0)
    filters = [("side", "=", "eval" if side == "eval" else "train"), chosen]
    table = pq.read_table(prepared.folder / SELECTION, columns=["perplexity"], filters=filters)
    values: NDArray[np.float64] = table.column("perplexity").to_numpy()
    return values
