"""Resumes a stream of ten million examples: seconds until the first item of a step in the middle is known."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from turnmill.files.packed import map_plan
from turnmill.mix import Share, Size
from turnmill.options import Pack
from turnmill.stream.steps import Steps, grouped_by_length
from turnmill.tokens.epochs import Epochs

EXAMPLES = 10_000_000
A_PACK = 4
RANKS, BATCH = 8, 4


@contextmanager
def told(what: str) -> Iterator[None]:
    """Prints how long it took."""
    start = time.perf_counter()
    yield
    print(f"{what}: {time.perf_counter() - start:.2f} s")


def main() -> None:
    """Print both ways."""
    numbers = np.random.default_rng(0).permutation(EXAMPLES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "epoch-0000.arrow"
        offsets = pa.array(np.arange(0, EXAMPLES + 1, A_PACK), pa.int32())
        table = pa.table({"examples": pa.ListArray.from_arrays(offsets, pa.array(numbers))})
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        with told("packs of a stored plan"):
            items = map_plan(path)
            steps = Steps(items.packs, BATCH, RANKS)
            items.of(steps.span(steps.total // 2, 3)[0])
    half = Size(EXAMPLES // 2, 0, 0)
    lengths = np.random.default_rng(1).integers(10, 4000, EXAMPLES)
    mixed = [Share("a", half, 0.25, EXAMPLES // 4), Share("b", half, 0.75, 3 * EXAMPLES // 4)]
    with told("examples of a mix, made anew and grouped by length"):
        epochs = Epochs(lengths, 4096, Pack(), 0, mixed)
        drawn = np.concatenate(list(epochs.numbers(3)))
        drawn = drawn[grouped_by_length(lengths[drawn], BATCH * RANKS, 512, np.random.default_rng(2))]


if __name__ == "__main__":
    main()
