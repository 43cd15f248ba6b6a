"""Columns of numbers, or records of them, as files of nothing else: appended to, and read through the page cache."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from turnmill.sorted_parts import Allocate

UNSIGNED, SIGNED = "<u8", "<i8"
"""Little-endian numbers of 64 bits, whatever the machine."""
SMALL = 1 << 14
"""Numbers that are not worth a file."""


class ArrayWriter:
    """A file of numbers in the making."""

    def __init__(self, path: Path, kind: Any) -> None:
        self._file: IO[bytes] = open(path, "wb")  # noqa: SIM115  # closed on leaving the writer
        self._kind = kind

    def write(self, numbers: NDArray[Any]) -> None:
        """Add numbers."""
        self._file.write(numbers.astype(self._kind, copy=False).tobytes())

    def __enter__(self) -> ArrayWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        self._file.close()


class Column:
    """Numbers that are gathered in a file below a folder, which is gone with them."""

    def __init__(self, folder: Path, kind: Any) -> None:
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115  # closed on leaving the column
        self._kind = kind

    def write(self, numbers: NDArray[Any]) -> None:
        """Add numbers."""
        self._file.write(numbers.astype(self._kind, copy=False).tobytes())

    def whole(self) -> NDArray[Any]:
        """All of them; they stay when the column is left."""
        import numpy as np

        self._file.flush()
        if not self._file.tell():
            return np.zeros(0, self._kind)
        return np.asarray(np.memmap(self._file, dtype=self._kind, mode="r"))

    def __enter__(self) -> Column:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None) -> None:
        self._file.close()


def open_array(path: Path, kind: Any) -> NDArray[Any]:
    """The numbers of a file; what is looked at is read, and nothing else."""
    import numpy as np

    if not path.stat().st_size:
        return np.zeros(0, dtype=kind)
    return np.asarray(np.memmap(path, dtype=kind, mode="r"))


def in_files(folder: Path) -> Allocate:
    """Arrays of zeros that lie in files below a folder, which are gone with the arrays; small ones in memory."""
    import numpy as np

    def allocate(length: int, kind: Any) -> NDArray[Any]:
        if length < SMALL:
            return np.zeros(length, kind)
        with TemporaryFile(dir=folder) as file:
            file.truncate(length * np.dtype(kind).itemsize)
            return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=(length,)))

    return allocate


def array_length(path: Path) -> int:
    """How many numbers a file holds."""
    return path.stat().st_size // 8


def wanted_of(numbers: NDArray[np.uint64], first: int, end: int) -> slice:
    """Where the numbers from `first` up to `end` stand in a sorted array."""
    import numpy as np

    start = int(np.searchsorted(numbers, np.uint64(first)))
    stop = len(numbers) if end > 2**64 - 1 else int(np.searchsorted(numbers, np.uint64(end)))
    return slice(start, stop)
