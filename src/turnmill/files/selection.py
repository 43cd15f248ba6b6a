"""A selection as it is stored: what was decided of every row, and the order of those that train."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.files.tables import batches
from turnmill.sorted_parts import Allocate, in_memory

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

SELECTION = "selection.parquet"


def train_ranks(path: Path, allocate: Allocate = in_memory) -> NDArray[np.int64]:
    """(training examples that stay,) each one's row's rank, in the order in which the examples are stored.

    Args:
        path: the selection.
        allocate: where they are kept.
    """
    import numpy as np

    examples = sum(int(_staying(batch)["examples"].sum()) for batch in _decided(path))
    ranks = allocate(examples, "i8")
    first = 0
    for batch in _decided(path):
        staying = _staying(batch)
        found = np.repeat(staying["rank"], staying["examples"])
        ranks[first : first + len(found)] = found
        first += len(found)
    return ranks


def _decided(path: Path) -> Iterator[pa.RecordBatch]:
    return batches(path, ["side", "code", "examples", "rank"])


def _staying(batch: pa.RecordBatch) -> dict[str, NDArray[np.int64]]:
    """Examples and rank of the rows of a batch that train."""
    import pyarrow.compute as pc

    trains = pc.and_(pc.equal(batch.column("side"), "train"), pc.equal(batch.column("code"), 0))
    rows = batch.filter(trains)
    return {name: rows.column(name).to_numpy() for name in ("examples", "rank")}
