"""Scores as they are stored: a table with a row an example, and the cache of what was scored before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from turnmill.conversation import Json, canonical_json
from turnmill.files.disk import write_whole, writing

if TYPE_CHECKING:
    import pyarrow as pa

KEY_BYTES = 16


class ExampleScore(NamedTuple):
    """What one example costs the scoring model; sums in nats, in double precision."""

    row_id: str
    part: int
    source: str
    tokens: int
    trained_tokens: int
    predicted: int
    """Trained tokens that something stands before: what `sum_nll` sums."""
    sum_nll: float
    """NaN where it could not be scored."""
    full_tokens: int
    """Tokens but the first."""
    full_nll: float
    """Of those; NaN where only trained ones were asked for."""
    turn_tokens: list[int]
    """Predicted tokens of each trained turn."""
    turn_nll: list[float]
    kinds: list[int]
    """Index in `turnmill.rendered.KINDS` of each kind that trains."""
    kind_tokens: list[int]
    kind_nll: list[float]
    reason: str | None
    """Why it could not be scored."""


@cache
def schema() -> pa.Schema:
    """The columns of `ExampleScore`, and `mean_nll` and `perplexity` of its trained tokens."""
    import pyarrow as pa

    fields = {
        "row_id": pa.string(),
        "part": pa.int32(),
        "source": pa.string(),
        "tokens": pa.int32(),
        "trained_tokens": pa.int32(),
        "predicted": pa.int32(),
        "sum_nll": pa.float64(),
        "full_tokens": pa.int32(),
        "full_nll": pa.float64(),
        "turn_tokens": pa.list_(pa.int32()),
        "turn_nll": pa.list_(pa.float64()),
        "kinds": pa.list_(pa.int8()),
        "kind_tokens": pa.list_(pa.int32()),
        "kind_nll": pa.list_(pa.float64()),
        "reason": pa.string(),
        "mean_nll": pa.float64(),
        "perplexity": pa.float64(),
    }
    return pa.schema([pa.field(name, kind, nullable=name == "reason") for name, kind in fields.items()])


def to_table(rows: Sequence[ExampleScore]) -> pa.Table:
    """Scores as a table of the schema."""
    import numpy as np
    import pyarrow as pa

    from turnmill.selection import perplexity

    columns: dict[str, Any] = {name: [getattr(row, name) for row in rows] for name in ExampleScore._fields}
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.array(columns["sum_nll"], dtype=np.float64) / np.array(columns["predicted"], dtype=np.float64)
    columns |= {"mean_nll": mean, "perplexity": perplexity(mean)}
    arrays = [pa.array(columns[field.name], type=field.type) for field in schema()]
    return pa.Table.from_arrays(arrays, schema=schema())


class Entry(NamedTuple):
    """What the cache knows of an example."""

    run_nll: list[float]
    """Nats of each trained run."""
    full_nll: float
    reason: str | None


class ScoreCache:
    """Everything that was scored with one scorer, in files that are only ever added.

    A file is named for the hash of its bytes: several may write at once, and one that is cut short or damaged is
    passed over.

    Args:
        folder: of all scorers.
        identity: of this one.
    """

    def __init__(self, folder: Path, identity: dict[str, Json]) -> None:
        text = canonical_json(identity)
        self._folder = folder / xxhash.xxh3_128_hexdigest(text)
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / "scorer.json", json.dumps(identity, indent=2).encode() + b"\n")
        self._tables = list(_segments(self._folder))
        self._index = _Index([table.column("key") for table in self._tables])

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """What is known of those examples."""
        found: dict[bytes, Entry] = {}
        for key, table, row in self._index.find(keys):
            values = self._tables[table].slice(row, 1).to_pylist()[0]
            found[key] = Entry(values["run_nll"], values["full_nll"], values["reason"])
        return found

    def add(self, entries: Iterable[tuple[bytes, Entry]]) -> None:
        """Store more."""
        import pyarrow as pa

        rows = [{"key": key, **entry._asdict()} for key, entry in entries]
        if not rows:
            return
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, _segment_schema()) as writer:
            writer.write_table(pa.Table.from_pylist(rows, schema=_segment_schema()))
        content = sink.getvalue().to_pybytes()
        with writing(self._folder):
            write_whole(self._folder / f"{xxhash.xxh3_128_hexdigest(content)}.arrow", content)


class _Index:
    """Where a key stands among the segments."""

    def __init__(self, columns: Sequence[pa.ChunkedArray]) -> None:
        import numpy as np

        keys = [np.frombuffer(b"".join(column.to_pylist()), dtype="S16") for column in columns]
        self._keys = np.concatenate([np.empty(0, "S16"), *keys])
        self._table = np.repeat(np.arange(len(keys)), [len(part) for part in keys])
        self._row = np.concatenate([np.empty(0, np.int64), *(np.arange(len(part)) for part in keys)])
        self._order = np.argsort(self._keys, kind="stable")

    def find(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, int, int]]:
        """(key, segment, row) of those that are there."""
        import numpy as np

        wanted = np.array(keys, dtype="S16")
        places = np.searchsorted(self._keys, wanted, sorter=self._order)
        inside = np.minimum(places, len(self._order) - 1)
        numbers = self._order[inside] if len(self._order) else np.zeros(0, np.int64)
        for asked in np.flatnonzero(self._keys[numbers] == wanted).tolist() if len(numbers) else ():
            number = numbers[asked]
            yield keys[asked], int(self._table[number]), int(self._row[number])


@cache
def _segment_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        {
            "key": pa.binary(KEY_BYTES),
            "run_nll": pa.list_(pa.float64()),
            "full_nll": pa.float64(),
            "reason": pa.string(),
        }
    )


def _segments(folder: Path) -> Iterator[pa.Table]:
    """The whole ones, in the order of their names."""
    import pyarrow as pa

    for path in sorted(folder.glob("*.arrow")):
        content = path.read_bytes()
        if xxhash.xxh3_128_hexdigest(content) == path.stem:
            yield pa.ipc.open_file(pa.BufferReader(content)).read_all()
