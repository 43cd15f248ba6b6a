"""Tokenized examples in Arrow IPC files: memory-mapped, an example by its number without reading the others."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.rendered import KINDS, Example, Kind, Run

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from turnmill.sorted_parts import Allocate

BATCH_EXAMPLES = 1000
MAX_OPENED = 256
"""Stored batches that are held open to lay examples out."""


@cache
def schema() -> pa.Schema:
    """Ids int32; runs as parallel lists: token offset behind each, recorded message, index in `KINDS`, weight."""
    import pyarrow as pa

    fields = {
        "row_id": pa.string(),
        "part": pa.int32(),
        "source": pa.string(),
        "source_file": pa.string(),
        "source_line": pa.int64(),
        "input_ids": pa.list_(pa.int32()),
        "run_ends": pa.list_(pa.int32()),
        "run_messages": pa.list_(pa.int32()),
        "run_kinds": pa.list_(pa.int8()),
        "run_weights": pa.list_(pa.float32()),
        "turn_ends": pa.list_(pa.int32()),
    }
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])


def to_table(examples: Sequence[Example]) -> pa.Table:
    """Examples as a table of the schema."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        name: [getattr(example, name) for example in examples]
        for name in ("row_id", "part", "source", "source_file", "source_line", "turn_ends")
    }
    arrays = {name: pa.array(values, type=schema().field(name).type) for name, values in columns.items()}
    arrays["input_ids"] = _ids_column([example.input_ids for example in examples])
    arrays |= _run_columns([example.runs for example in examples])
    return pa.Table.from_arrays([arrays[name] for name in schema().names], schema=schema())


def _ids_column(ids: Sequence[Sequence[int]]) -> pa.ListArray:
    """The examples' token ids: lists, or arrays, which cost no object a token."""
    import numpy as np
    import pyarrow as pa

    flat = np.concatenate([np.asarray(of_example, dtype=np.int32) for of_example in ids] or [np.zeros(0, np.int32)])
    return pa.ListArray.from_arrays(pa.array([0, *accumulate(map(len, ids))], type=pa.int32()), pa.array(flat))


def _run_columns(runs: Sequence[Sequence[Run]]) -> dict[str, pa.Array]:
    """The columns of the examples' runs, each made of one long list."""
    import pyarrow as pa

    numbers = {kind: number for number, kind in enumerate(KINDS)}
    offsets = pa.array([0, *accumulate(map(len, runs))], type=pa.int32())
    flat = [run for of_example in runs for run in of_example]
    columns = {
        "run_ends": [run.end for run in flat],
        "run_messages": [run.message for run in flat],
        "run_kinds": [numbers[run.kind] for run in flat],
        "run_weights": [run.weight for run in flat],
    }
    kinds = {name: schema().field(name).type for name in columns}
    return {
        name: pa.ListArray.from_arrays(offsets, pa.array(values, type=kinds[name].value_type))
        for name, values in columns.items()
    }


class ExampleWriter:
    """An Arrow IPC file of examples, in batches."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._rows: list[Example] = []
        self._file = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._file, schema())

    def write(self, example: Example) -> None:
        """Add an example."""
        self._rows.append(example)
        if len(self._rows) >= BATCH_EXAMPLES:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(to_table(self._rows))
            self._rows = []

    def close(self) -> None:
        """Write what is left."""
        self._flush()
        self._writer.close()
        self._file.close()


class Laid(NamedTuple):
    """Examples laid end to end."""

    row_ids: list[str]
    lengths: NDArray[np.int32]
    """(examples,) tokens of each."""
    input_ids: NDArray[np.int32]
    """(tokens,)."""
    weights: NDArray[np.float32]
    """(tokens,)."""


class Numbers:
    """A list column of numbers of a stored batch, over the mapped file."""

    def __init__(self, batch: pa.RecordBatch, name: str) -> None:
        column = batch.column(name)
        self._ends = column.offsets.to_numpy().tolist()
        self._values: NDArray[Any] = column.values.to_numpy()

    def __getitem__(self, index: int) -> NDArray[Any]:
        """The list of one row."""
        found: NDArray[Any] = self._values[self._ends[index] : self._ends[index + 1]]
        return found


class Columns:
    """What is laid out of a stored batch, opened once."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.row_ids = batch.column("row_id")
        self.input_ids, self.run_ends, self.run_weights = (
            Numbers(batch, name) for name in ("input_ids", "run_ends", "run_weights")
        )


class Examples:
    """The examples of several files, in order, by number."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._files = [_mapped(path) for path in paths]
        self._batches: list[pa.RecordBatch] = [batch for file in self._files for batch in _batches_of(file)]
        self._starts = [0, *accumulate(batch.num_rows for batch in self._batches)]
        self._columns: dict[int, Columns] = {}

    def __len__(self) -> int:
        return int(self._starts[-1])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The stored batches, memory-mapped."""
        yield from self._batches

    def release(self) -> None:
        """Let go of the memory of what was read, where the system can: it is mapped again where it is read again."""
        for file in self._files:
            if hasattr(file, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
                file.madvise(mmap.MADV_DONTNEED)

    def lengths(self, allocate: Allocate | None = None) -> NDArray[np.int64]:
        """(examples,) tokens of each.

        Args:
            allocate: where they are kept; None: in memory.
        """
        import pyarrow.compute as pc

        from turnmill.sorted_parts import in_memory

        found = (allocate or in_memory)(len(self), "i8")
        for batch, start in zip(self._batches, self._starts, strict=False):
            found[start : start + batch.num_rows] = pc.list_value_length(batch.column("input_ids")).to_numpy()
        return found

    def row(self, number: int) -> dict[str, Any]:
        """One example as a dict of the schema's columns; lists are numpy arrays over the mapped file."""
        place, index = self._place(number)
        batch = self._batches[place]
        return {name: _value(batch.column(name)[index]) for name in batch.schema.names}

    def _place(self, number: int) -> tuple[int, int]:
        """Which batch an example is in, and where."""
        place = bisect_right(self._starts, number) - 1
        return place, number - self._starts[place]

    def laid_out(self, numbers: Iterable[int]) -> Laid:
        """Some examples, at least one, end to end in that order."""
        import numpy as np

        found = [(self._columns_of(place), index) for place, index in map(self._place, numbers)]
        ids = [columns.input_ids[index] for columns, index in found]
        runs = [columns.run_ends[index] for columns, index in found]
        weights = np.concatenate([columns.run_weights[index] for columns, index in found])
        return Laid(
            [columns.row_ids[index].as_py() for columns, index in found],
            np.array(list(map(len, ids)), dtype=np.int32),
            np.concatenate(ids),
            np.repeat(weights, sizes_of(np.concatenate(runs), list(map(len, runs)))),
        )

    def _columns_of(self, place: int) -> Columns:
        if place not in self._columns:
            if len(self._columns) >= MAX_OPENED:
                self._columns.clear()
            self._columns[place] = Columns(self._batches[place])
        return self._columns[place]

    def __getitem__(self, number: int) -> Example:
        """One example."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        row = self.row(number)
        kinds: list[Kind] = [KINDS[kind] for kind in row["run_kinds"]]
        runs = [
            Run(int(end), int(message), kind, float(weight))
            for end, message, kind, weight in zip(
                row["run_ends"], row["run_messages"], kinds, row["run_weights"], strict=True
            )
        ]
        ids, turn_ends = row["input_ids"].tolist(), row["turn_ends"].tolist()
        place = (row["row_id"], row["part"], row["source"], row["source_file"], row["source_line"])
        return Example(*place, ids, runs, turn_ends)


def mapped(path: Path) -> list[pa.RecordBatch]:
    """The stored batches of a file, memory-mapped."""
    return _batches_of(_mapped(path))


def _mapped(path: Path) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _batches_of(file: mmap.mmap) -> list[pa.RecordBatch]:
    import pyarrow as pa

    reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(file)))
    return [reader.get_batch(number) for number in range(reader.num_record_batches)]


def run_sizes(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """(runs of all examples,) tokens of each."""
    import pyarrow.compute as pc

    runs = pc.list_value_length(batch.column("run_ends")).to_numpy()
    return sizes_of(batch.column("run_ends").flatten().to_numpy(), runs)


def sizes_of(run_ends: NDArray[Any], runs: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Tokens of each run.

    Args:
        run_ends: (runs of all examples,) the token offset behind each in its example.
        runs: (examples,) how many each has, at least one.
    """
    import numpy as np

    ends = run_ends.astype(np.int64)
    first = np.concatenate([[0], np.cumsum(runs)[:-1]]).astype(np.int64)
    sizes = np.diff(np.append(0, ends))
    sizes[first] = ends[first]
    return sizes


def token_counts(batch: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(examples,) tokens, and (examples,) trained tokens."""
    import numpy as np
    import pyarrow.compute as pc

    runs = pc.list_value_length(batch.column("run_ends")).to_numpy()
    first = np.concatenate([[0], np.cumsum(runs)[:-1]]).astype(np.int64)
    trained = run_sizes(batch) * (batch.column("run_weights").flatten().to_numpy() > 0)
    return pc.list_value_length(batch.column("input_ids")).to_numpy(), np.add.reduceat(trained, first)


def _value(scalar: Any) -> Any:
    values = getattr(scalar, "values", None)
    return scalar.as_py() if values is None else values.to_numpy()
