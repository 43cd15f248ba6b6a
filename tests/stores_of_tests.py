"""What the tests of stores share."""

from __future__ import annotations

from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.options import Read

SECRET = "a-secret-that-nobody-shows"
NOBODY = "http://127.0.0.1:1"
"""Where nothing listens."""


def lines_of(count: int, first: int = 0) -> bytes:
    """Small records, a line each, of one length whatever is first."""
    return b"".join(b'{"n": %03d}\n' % (number % 100 + 100) for number in range(first, first + count))


def found_at(data: str) -> list[tuple[str, object]]:
    """Name and content of every file of a source, in order: sha256, size, and its records in two shards or more."""
    planned = plan("mine", [data], Read(), shard_bytes=64)
    found = [record for shard in planned.shards for record in records(shard, Read())]
    read = [(record.source_file, record.row, record.value) for record in found]
    return [
        (file.name, (file.sha256, file.bytes, file.layout, [row for row in read if row[0] == file.name]))
        for file in planned.files
    ]
