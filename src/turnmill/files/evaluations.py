"""Evaluations as they are stored: a folder with a row an example, and read back to be compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnmill.errors import UsageError, shell_word
from turnmill.evaluation.results import GROUPS, MEASURES, Group, ItemLoss, Loss
from turnmill.files.inventory import MANIFEST, verify

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "evaluation"
"""Of the folder's manifest."""
ITEMS, SUMMARY, REPORT = "items.parquet", "summary.json", "report.html"


@cache
def schema() -> pa.Schema:
    """The example's set and key, its sums, and those of each group (`answer_nll` …); `loss` is nats a token."""
    import pyarrow as pa

    keys = [("set", pa.string()), ("row_id", pa.string()), ("part", pa.int32()), ("loss", pa.float64())]
    sums = [(name, pa.int64() if name == "tokens" else pa.float64()) for name in MEASURES]
    of_groups = [(column_of(group, name), kind) for group in GROUPS for name, kind in sums]
    return pa.schema([*keys, *sums, ("entropy", pa.float64()), *of_groups, ("unscored", pa.string())])


def column_of(group: Group, measure: str) -> str:
    """The column of a group's measure."""
    return f"{group.replace('-', '_')}_{measure}"


def to_table(items: Sequence[ItemLoss]) -> pa.Table:
    """Examples as a table of the schema; what is NaN is null."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        "set": [item.set for item in items],
        "row_id": [item.row_id for item in items],
        "part": [item.part for item in items],
        "loss": [item.total.loss for item in items],
        "entropy": [item.entropy for item in items],
        "unscored": [item.unscored for item in items],
    }
    for measure in MEASURES:
        columns[measure] = [getattr(item.total, measure) for item in items]
        for group in GROUPS:
            columns[column_of(group, measure)] = [getattr(item.groups.get(group, Loss()), measure) for item in items]
    arrays = [pa.array(columns[field.name], type=field.type, from_pandas=True) for field in schema()]
    return pa.Table.from_arrays(arrays, schema=schema())


class StoredEvaluation:
    """An evaluation that was published.

    Args:
        folder: where.

    Attributes:
        folder: where.
        manifest: what it says of itself.

    Raises:
        UsageError: there is none.
        StaleError: a file is missing or changed.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / MANIFEST).is_file():
            what = f"{folder} is no evaluation: it has no {MANIFEST}"
            raise UsageError(what, next_step=f"turnmill evaluate MODEL --data OUT --output {shell_word(folder)}")
        self.folder = folder
        self.manifest: dict[str, Any] = verify(folder)
        if self.manifest.get("kind") != KIND:
            what = f"{folder} holds {self.manifest.get('kind', 'a step')!r}, not an evaluation"
            raise UsageError(what, next_step=f"ls {shell_word(folder)}")

    def items(self) -> list[ItemLoss]:
        """The examples, as they were scored."""
        import pyarrow.parquet as pq

        return [_item(row) for row in pq.read_table(self.folder / ITEMS).to_pylist()]


def _item(row: dict[str, Any]) -> ItemLoss:
    groups = {group: Loss(*(row[column_of(group, measure)] for measure in MEASURES)) for group in GROUPS}
    return ItemLoss(
        set=row["set"],
        row_id=row["row_id"],
        part=row["part"],
        total=Loss(*(row[measure] for measure in MEASURES)),
        entropy=float("nan") if row["entropy"] is None else row["entropy"],
        groups={group: loss for group, loss in groups.items() if loss.tokens},
        unscored=row["unscored"],
    )
