"""Packs as they are stored: plans of example numbers, and packed rows in the Parquet layout that trainers load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnmill.files.examples import Examples, Laid
from turnmill.tokens.labels import IGNORE

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from turnmill.tokens.pack import Plan

BATCH_PACKS = 256
PACKS_PER_FILE = 20_000


def write_plan(path: Path, plan: Plan) -> None:
    """A plan: one row a pack, the numbers of its examples in order."""
    import pyarrow as pa

    starts = pa.array(plan.starts)
    kind = pa.ListArray if starts.type == pa.int32() else pa.LargeListArray
    lists = kind.from_arrays(starts, pa.array(plan.numbers))
    batch = pa.RecordBatch.from_arrays([lists], ["examples"])
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)  # as one: it is mapped as one


def map_plan(path: Path) -> Plan:
    """A stored plan, mapped, not read."""
    import pyarrow as pa

    from turnmill.tokens.pack import Plan

    lists = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0).column("examples")
    return Plan(lists.offsets.to_numpy(), lists.values.to_numpy())


def packed_schema(*, weighted: bool) -> pa.Schema:
    """Columns of packed rows; `loss_weights` where any weight is neither 0 nor 1."""
    import pyarrow as pa

    ids = pa.list_(pa.int32())
    fields = {"input_ids": ids, "labels": ids, "seq_lengths": ids, "row_ids": pa.list_(pa.string())}
    if weighted:
        fields["loss_weights"] = pa.list_(pa.float32())
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields.items()])


def is_weighted(examples: Examples) -> bool:
    """Whether any token's weight is neither 0 nor 1: then labels alone do not say the loss."""
    import pyarrow.compute as pc

    for batch in examples.batches():
        weights = batch.column("run_weights").flatten()
        if pc.any(pc.and_(pc.not_equal(weights, 0.0), pc.not_equal(weights, 1.0))).as_py():
            return True
    return False


def write_packed(folder: Path, examples: Examples, plan: Plan) -> None:
    """`part-00000.parquet` and on: the packs' ids, labels and lengths, laid end to end.

    The first label of every document is ignored: nothing before it in its own document predicts it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = packed_schema(weighted=is_weighted(examples))
    for number, start in enumerate(range(0, max(1, plan.packs), PACKS_PER_FILE)):
        part = plan.part(start, start + PACKS_PER_FILE)
        with pq.ParquetWriter(folder / f"part-{number:05d}.parquet", schema, compression="zstd") as writer:
            for rows in _batches(examples, part):
                writer.write_table(pa.Table.from_arrays([rows[name] for name in schema.names], schema=schema))


def _batches(examples: Examples, plan: Plan) -> Iterator[dict[str, pa.Array]]:
    """The columns of some packs at a time."""
    for start in range(0, plan.packs, BATCH_PACKS):
        yield _columns(examples, plan.part(start, start + BATCH_PACKS))
        examples.release()


def _columns(examples: Examples, plan: Plan) -> dict[str, pa.Array]:
    import numpy as np
    import pyarrow as pa

    laid = examples.laid_out(plan.numbers.tolist())
    documents = plan.starts.astype(np.int32)
    tokens = np.append(0, np.cumsum(laid.lengths))[documents].astype(np.int32)
    ids, weights = laid.input_ids, trained_weights(laid)
    flat = {"input_ids": ids, "labels": np.where(weights > 0, ids, np.int32(IGNORE)), "loss_weights": weights}
    columns = {name: pa.ListArray.from_arrays(pa.array(tokens), pa.array(values)) for name, values in flat.items()}
    for name, each in (("seq_lengths", pa.array(laid.lengths)), ("row_ids", pa.array(laid.row_ids, pa.string()))):
        columns[name] = pa.ListArray.from_arrays(pa.array(documents), each)
    return columns


def trained_weights(laid: Laid) -> NDArray[np.float32]:
    """(tokens,) loss weight of each token, the first of each document's 0."""
    import numpy as np

    weights = laid.weights
    weights[np.cumsum(laid.lengths) - laid.lengths] = 0.0
    return weights


def packed_row(laid: Laid) -> dict[str, Any]:
    """Examples end to end: the columns of a packed row, the first label of each ignored."""
    import numpy as np

    weights = trained_weights(laid)
    return {
        "input_ids": laid.input_ids,
        "labels": np.where(weights > 0, laid.input_ids, np.int32(IGNORE)),
        "seq_lengths": laid.lengths,
        "row_ids": laid.row_ids,
        "loss_weights": weights,
    }
