"""A selection as it is stored: what was decided of every row, and the order of those that train."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SELECTION = "selection.parquet"


def train_ranks(path: Path) -> NDArray[np.int64]:
    """(training examples that stay,) each one's row's rank, in the order in which the examples are stored."""
    import numpy as np
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["examples", "rank"], filters=[("side", "=", "train"), ("code", "=", 0)])
    return np.repeat(table.column("rank").to_numpy(), table.column("examples").to_numpy())
