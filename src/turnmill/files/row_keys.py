"""The rows of a prepared folder, each as a few numbers: enough to find it again in another folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from turnmill.files.examples import run_sizes
from turnmill.files.prepared import PreparedData, Side
from turnmill.files.tables import batches

if TYPE_CHECKING:
    import pyarrow as pa

SIDES: tuple[Side, ...] = ("train", "eval")
IDENTITY = ["id", "source", "source_id", "source_file", "source_line"]
PLACE = ["source", "source_file", "source_line"]


class RowKeys(NamedTuple):
    """Rows, in the order of `SIDES` and of the stored conversations; about 90 bytes each."""

    ids: NDArray[np.uint64]
    """(rows, 2): what the model sees of the conversation."""
    names: NDArray[np.uint64]
    """(rows, 2): its source and its id there; 0 where it has none."""
    places: NDArray[np.uint64]
    """(rows,): source, file and line."""
    sides: NDArray[np.uint8]
    """(rows,): index in `SIDES`."""
    sources: NDArray[np.int32]
    """(rows,): index in `source_names`."""
    tokens: NDArray[np.int64]
    """(rows,): of all its examples."""
    trained: NDArray[np.int64]
    """(rows,): those of them that train."""
    token_digests: NDArray[np.uint64]
    """(rows,): of the ids of its examples."""
    weight_digests: NDArray[np.uint64]
    """(rows,): of the weight of every token."""
    source_names: list[str]


def row_keys(prepared: PreparedData) -> RowKeys:
    """The rows of both sides; one batch of conversations or examples is in memory at a time."""
    names: dict[str, int] = {}
    parts = [_side(prepared, side, number, names) for number, side in enumerate(SIDES)]
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return RowKeys._make([*columns, list(names)])


def _side(prepared: PreparedData, side: Side, number: int, names: dict[str, int]) -> tuple[NDArray[Any], ...]:
    """The columns of `RowKeys` that are arrays, of one side."""
    pairs, singles = np.zeros((0, 2), np.uint64), np.zeros(0, np.uint64)
    ids, own, places, joins, sources = [pairs], [pairs], [singles], [singles], [np.zeros(0, np.int64)]
    for path in prepared.conversation_files(side):
        for batch in batches(path, IDENTITY):
            ids.append(_hex_numbers(batch.column("id").to_pylist()))
            own.append(_names(batch))
            places.append(place_digests(batch))
            joins.append(_joins(batch, "id"))
            sources.append(np.array([names.setdefault(n, len(names)) for n in batch.column("source").to_pylist()]))
    joined = np.concatenate(joins)
    sums = _example_sums(prepared, side, joined)
    which = np.full(len(joined), number, np.uint8)
    return (
        np.concatenate(ids), np.concatenate(own), np.concatenate(places), which,
        np.concatenate(sources).astype(np.int32), *sums,
    )  # fmt: skip


def _example_sums(prepared: PreparedData, side: Side, rows: NDArray[np.uint64]) -> tuple[NDArray[Any], ...]:
    """Tokens, trained tokens and the two digests of each row: sums over its examples, which may lie anywhere."""
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    tokens, trained = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    token_digests, weight_digests = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint64)
    examples = prepared.examples(side)
    for batch in examples.batches():
        at = order[np.minimum(np.searchsorted(ordered, _joins(batch, "row_id")), max(len(rows) - 1, 0))]
        lengths, weights, digests = _digested(batch)
        np.add.at(tokens, at, lengths)
        np.add.at(trained, at, weights)
        np.add.at(token_digests, at, digests[:, 0])
        np.add.at(weight_digests, at, digests[:, 1])
        examples.release()
    return tokens, trained, token_digests, weight_digests


def _digested(batch: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """(examples,) tokens, (examples,) trained tokens and (examples, 2) digests of ids and of weights."""
    ids = batch.column("input_ids")
    ends = np.cumsum(ids.value_lengths().to_numpy()).tolist()
    flat = np.ascontiguousarray(ids.flatten().to_numpy())
    weights = np.repeat(batch.column("run_weights").flatten().to_numpy(), run_sizes(batch))
    starts, parts = [0, *ends[:-1]], batch.column("part").to_pylist()
    digest = xxhash.xxh3_64_intdigest
    found = [
        (digest(flat[a:b].data, part), digest(weights[a:b].data, part))
        for a, b, part in zip(starts, ends, parts, strict=True)
    ]
    trained = [int(np.count_nonzero(weights[a:b] > 0)) for a, b in zip(starts, ends, strict=True)]
    lengths = np.array(ends, np.int64) - np.array(starts, np.int64)
    return lengths, np.array(trained, np.int64), np.array(found, np.uint64).reshape(-1, 2)


def place_digests(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """(rows,) of source, file and line: conversations and rows that left have the same columns for them."""
    return np.array([xxhash.xxh3_64_intdigest(text) for text in _texts(batch, PLACE)], np.uint64)


def _joins(batch: pa.RecordBatch, id_column: str) -> NDArray[np.uint64]:
    """(rows,) of id and place: what an example and its conversation share."""
    return np.array([xxhash.xxh3_64_intdigest(text) for text in _texts(batch, [id_column, *PLACE])], np.uint64)


def _names(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    has_one = [value is not None for value in batch.column("source_id").to_pylist()]
    texts = _texts(batch, ["source", "source_id"])
    digests = [
        xxhash.xxh3_128_hexdigest(text) if named else "0" * 32 for named, text in zip(has_one, texts, strict=True)
    ]
    return _hex_numbers(digests)


def _texts(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[bytes]:
    """(rows,) of those columns with a NUL between."""
    values = [batch.column(name).to_pylist() for name in columns]
    rows = zip(*values, strict=True)
    return ("\0".join("" if value is None else str(value) for value in row).encode("utf-8") for row in rows)


def _hex_numbers(digests: Sequence[str]) -> NDArray[np.uint64]:
    """(rows, 2) of 32 hex digits each."""
    return np.frombuffer(bytes.fromhex("".join(digests)), ">u8").astype(np.uint64).reshape(-1, 2)


def matched(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places in `a` and in `b` of equal keys, one to one: the first of a key goes with the first, and so on.

    Args:
        a: (rows, 2).
        b: (rows, 2).
    """
    both = np.concatenate([a, b])
    of_b = np.arange(len(both)) >= len(a)
    order = np.lexsort((of_b, both[:, 1], both[:, 0]))
    if not len(order):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sorted_keys, sides = both[order], of_b[order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (sorted_keys[1:] != sorted_keys[:-1]).any(axis=1)
    of_side = begins.copy()
    of_side[1:] |= sides[1:] != sides[:-1]
    number = np.arange(len(order)) - np.flatnonzero(of_side)[np.cumsum(of_side) - 1]
    key = np.cumsum(begins) * (int(number.max()) + 1) + number
    _, in_a, in_b = np.intersect1d(key[~sides], key[sides], assume_unique=True, return_indices=True)
    return order[~sides][in_a], order[sides][in_b] - len(a)


def stored_at(files: Sequence[Path], numbers: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Number and one-row batch of some stored conversations, in order of number.

    Args:
        files: in order.
        numbers: of rows, counted through all files.
    """
    import pyarrow.parquet as pq

    wanted, first = sorted(numbers), 0
    for path in files:
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            end = first + metadata.row_group(group).num_rows
            inside = [number for number in wanted if first <= number < end]
            if inside:
                table = next(iter(_whole_group(path, group)))
                yield from ((number, table.slice(number - first, 1)) for number in inside)
            first = end


def _whole_group(path: Path, group: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    table = pa.Table.from_batches(list(batches(path, groups=[group]))).combine_chunks()
    yield table.to_batches()[0]
