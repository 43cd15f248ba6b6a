"""What select and pack hold in memory hangs on a part's rows, not on how many rows there are."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import resource, sys, tempfile
from pathlib import Path
import numpy as np, pyarrow.parquet
from turnmill.files.arrays import Column, in_files
from turnmill.sorted_parts import in_memory, parts_of

rows, room_mib, is_kept_in_files = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "files"
folder = Path(sys.argv[4])
data = [line for line in open("/proc/self/status") if line.startswith("VmData")]
resource.setrlimit(resource.RLIMIT_DATA, [int(data[0].split()[1]) * 1024 + room_mib * 2**20] * 2)
allocate = in_files(folder) if is_kept_in_files else in_memory
random = np.random.default_rng(0)

def column(draw, kind):
    with Column(folder, kind) as made:
        for part in parts_of(rows, 1 << 16):
            made.write(draw(part.stop - part.start))
        return made.whole()

lengths = column(lambda count: random.integers(2, 500, count), np.int64)
"""
SELECT = """
from turnmill.options import Select
from turnmill.report.selection import pool_facts
from turnmill.selection import Groups, Room, Scored, select

nll = column(lambda count: random.lognormal(5, 1, count), np.float64)
scored = Scored(lengths, lengths, nll, nll, lengths, lengths)
groups = Groups(["a", "b"], column(lambda count: random.integers(0, 2, count), np.int32))
options = Select(strategy=sys.argv[5], tokens=50 * rows, quotas={"a": 1, "b": 2}, max_perplexity=0, max_tokens=10**6)
chosen = select(scored, options, 0, groups, Room(allocate, 1 << 16))
facts = pool_facts(scored, chosen, groups, is_scored=True, room=Room(allocate, 1 << 16))
print(facts["selected"]["trained_tokens"] / (50 * rows))
"""
PACK = """
from turnmill.files.packed import map_plan, write_plan
from turnmill.mix import Size, shares
from turnmill.options import Mix, Pack
from turnmill.tokens.epochs import Epochs

sizes = {"a": Size(rows // 4, 1, 1), "b": Size(rows - rows // 4, 1, 1)}
mixed = shares(sizes, {"a": 1.0, "b": 1.0}, Mix())
options = Pack(order=sys.argv[5])
epochs = Epochs(lengths, 512, options, 0, mixed, allocate=allocate, part_examples=1 << 16)
write_plan(folder / "plan.arrow", epochs.plan(1))
print(map_plan(folder / "plan.arrow").numbers.size / rows)
"""
ROWS = 64 << 16
ROOM_MIB = 64
"""An eighth of a column of numbers for each of the 64 parts would not fit."""


def ran(script: str, way: str, where: str, folder) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BEGIN + script, str(ROWS), str(ROOM_MIB), where, str(folder), way]
    return subprocess.run(command, capture_output=True, text=True, check=False)


WAYS = [(SELECT, "optimal"), (SELECT, "curriculum"), (PACK, "random"), (PACK, "kept")]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit on private memory is Linux's")
@pytest.mark.parametrize(("script", "way"), WAYS)
def test_64_parts_fit_where_their_rows_would_not(script, way, tmp_path):
    found = ran(script, way, "files", tmp_path)
    assert found.returncode == 0, found.stderr
    assert 0.99 < float(found.stdout) <= 1
    assert "MemoryError" in ran(script, way, "memory", tmp_path).stderr
