from collections.abc import Callable
from pathlib import Path

import pytest

from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.files.record import Record
from turnmill.options import Read

Reader = Callable[..., list[Record]]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Write bytes to a file, plan it and read all its shards."""

    def write_and_read(
        content: bytes, *, name: str = "rows.jsonl", shard_bytes: int = 1 << 20, **options
    ) -> list[Record]:
        (tmp_path / name).write_bytes(content)
        chosen = Read(**options)
        planned = plan("mine", [str(tmp_path / name)], chosen, shard_bytes=shard_bytes)
        found = [record for shard in planned.shards for record in records(shard, chosen)]
        assert len(found) == planned.rows
        return found

    return write_and_read
