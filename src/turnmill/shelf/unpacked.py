"""How much a Parquet file unpacks to, found out in a limited process: a kilobyte can be terabytes."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from turnmill.errors import UsageError
from turnmill.executors.limited import OUT_OF_MEMORY, Limits, answer_of, hold

TIMES = 8
"""A file may unpack to so many times what a file may have; text that is packed well has a sixth of its size."""
LEAST_ROW_BYTES = 32
"""Of a row as JSON: a file may have no more rows than JSON lines of the largest size."""
BATCH_ROWS = 1000
LIMITS = Limits(cpu_s=30, wall_s=120.0)
_ROOM_MIB = 512
"""For the process itself, beside two copies of what the file unpacks to."""


class Asked(msgspec.Struct, frozen=True):
    """What the process is given."""

    path: str
    max_bytes: int
    max_rows: int


def require_unpacks_to(path: Path, max_bytes: int) -> None:
    """Refuse a Parquet file that unpacks to more than it should; one that cannot be read is left to its reader.

    Args:
        path: of the file.
        max_bytes: of a data file.

    Raises:
        UsageError: it does.
    """
    asked = Asked(str(path), TIMES * max_bytes, max_bytes // LEAST_ROW_BYTES)
    expected = f"expected at most {asked.max_bytes:,} bytes and {asked.max_rows:,} rows"
    try:
        is_small = answer_of("turnmill.shelf.unpacked", msgspec.json.encode(asked), path.name, LIMITS) == b"small"
    except UsageError:  # it took too long, or too much memory
        is_small = False
    if not is_small:
        raise UsageError(f"{path} unpacks to too much; {expected}")


def _is_small(asked: Asked) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from turnmill.files.parquet import bytes_of_texts

    bytes_of_texts(pa.table({"a": ["a"]}).to_batches()[0].to_struct_array())  # imports what it imports late
    used = int(Path("/proc/self/statm").read_text().split()[0]) * 4096 if Path("/proc/self/statm").exists() else 1 << 31
    with open(asked.path, "rb") as file:
        hold(Limits(LIMITS.cpu_s, LIMITS.wall_s, ((used + 2 * asked.max_bytes) >> 20) + _ROOM_MIB))
        try:
            parquet = pq.ParquetFile(file, pre_buffer=False)
            if parquet.metadata.num_rows > asked.max_rows:
                return False
            size = rows = 0
            for batch in parquet.iter_batches(BATCH_ROWS, use_threads=False):
                size += batch.nbytes + int(bytes_of_texts(batch.to_struct_array()).sum())
                rows += batch.num_rows
                if size > asked.max_bytes or rows > asked.max_rows:
                    return False
        except (pa.ArrowMemoryError, MemoryError):
            return False
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            return True
    return True


def main() -> int:
    """Answers `small` or `large` to what standard input asks for."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Asked)
    try:
        sys.stdout.write("small" if _is_small(asked) else "large")
    except MemoryError:
        return OUT_OF_MEMORY
    return 0


if __name__ == "__main__":
    sys.exit(main())
