"""Peak memory of dedup and split hangs on a partition's rows, not on how many partitions there are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from turnmill.files.tables import BATCH_ROWS
from turnmill.verbs.filter import INDEX, index_schema

PARTITION_ROWS = 100_000
RUN = """
import resource, sys
from pathlib import Path
from turnmill.options import Split
from turnmill.verbs import partitions
from turnmill.verbs.held_out import SplitTask, sides_of
from turnmill.verbs.repeats import losers_of

partitions.parts_of.__defaults__ = (int(sys.argv[2]),)
indexes, empty, folder = tuple(sys.argv[4:]), sys.argv[3], Path(sys.argv[1])
count = -(-partitions.rows_of(indexes) // int(sys.argv[2]))
run = partitions.in_folder(folder)
losers_of(run, (), indexes, ("a", "b"), ("exact", "first-exchange"), None, count)
sides_of(run, SplitTask(indexes, empty, ("a", "b"), Split(rows=1000), {}, partitions=count), ())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
"""The stages after the index in one process, each task after the other."""


def key_of(value: int) -> str:
    """32 hex digits, spread as those of a hash."""
    return f"{value * 0x9E3779B97F4A7C15 % 2**64:016x}{value:016x}"


def write_index(folder: Path, rows: int) -> list[str]:
    """Two sources of which a third of the rows have an id, and a fifth an exchange, that another has."""
    import pyarrow.parquet as pq

    draw, paths = np.random.default_rng(1), []
    for number, source in enumerate("ab"):
        paths.append(folder / f"{source}-{INDEX}")
        with pq.ParquetWriter(paths[-1], index_schema()) as out:
            for first in range(number * rows // 2, (number + 1) * rows // 2, BATCH_ROWS):
                ids, exchanges = draw.integers(0, 5 * rows // 4, BATCH_ROWS), draw.integers(0, 2 * rows, BATCH_ROWS)
                columns = {
                    "row": range(first, first + BATCH_ROWS),
                    "source": [source] * BATCH_ROWS,
                    "source_file": [f"{source}.jsonl"] * BATCH_ROWS,
                    "source_line": range(first + 1, first + BATCH_ROWS + 1),
                    "id": [key_of(value) for value in ids.tolist()],
                    "weights": [""] * BATCH_ROWS,
                    "group": draw.integers(0, 2**64, BATCH_ROWS, dtype=np.uint64),
                    "exchange": [key_of(value) for value in exchanges.tolist()],
                    "kept": [True] * BATCH_ROWS,
                }
                out.write_batch(pa.record_batch(columns, schema=index_schema()))
    return list(map(str, paths))


def peak_mib(folder: Path, rows: int) -> int:
    """MiB of a process that runs the stages on so many rows."""
    import pyarrow.parquet as pq

    folder.mkdir()
    indexes, empty = write_index(folder, rows), folder / "none.parquet"
    pq.write_table(pa.table({"row": pa.array([], pa.int64())}), empty)
    command = [sys.executable, "-c", RUN, folder / "stages", str(PARTITION_ROWS), empty, *indexes]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_eight_times_the_rows_take_hardly_more_memory(tmp_path):
    small, large = (peak_mib(tmp_path / f"{times}", times * 2 * PARTITION_ROWS) for times in (1, 8))
    assert large <= 1.2 * small, f"{small} MiB for 200,000 rows, {large} MiB for 1,600,000"
