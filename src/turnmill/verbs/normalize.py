"""normalize: rendered texts under the hash of their content, each text once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import xxhash

from turnmill.files.tables import TableWriter, batches
from turnmill.files.texts import Text, sourced_texts_table, template_of, text_schema
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
TEXTS, DUPLICATES = "texts.parquet", "duplicates.parquet"


class NormalizeTask(NamedTuple):
    """All texts of a source, in order."""

    texts: tuple[str, ...]


class Repeated(NamedTuple):
    """A text that leaves, and the conversation whose text is the same."""

    id: str
    source_id: str
    winner_source_id: str


@cache
def duplicates_schema() -> pa.Schema:
    """The schema of the texts that leave."""
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.string(), nullable=False) for name in Repeated._fields])


def _repeated_table(rows: list[Repeated]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist([row._asdict() for row in rows], schema=duplicates_schema())


def step_of(rendered: Step) -> Step:
    """The recipe of a source's normalised texts."""
    return Step("normalize", VERSION, {}, (rendered.fingerprint,))


def run_shard(task: NormalizeTask, folder: Path) -> ShardResult:
    """Write each text once, the first of equal ones; not a byte of a text changes."""
    schema = text_schema(template_of(Path(task.texts[0])) or "", with_source_id=True)
    first: dict[bytes, str] = {}
    counts: Counter[str] = Counter()
    with (
        TableWriter(folder / TEXTS, schema, sourced_texts_table) as out,
        TableWriter(folder / DUPLICATES, duplicates_schema(), _repeated_table) as repeated,
    ):
        for source_id, text in _texts(task):
            digest = xxhash.xxh3_128(text.encode("utf-8"))
            winner = first.setdefault(digest.digest(), source_id)
            is_first = winner is source_id
            counts["normalize/unique" if is_first else "normalize/duplicates"] += 1
            if is_first:
                out.write(Text(digest.hexdigest(), text, source_id))
            else:
                repeated.write(Repeated(digest.hexdigest(), source_id, winner))
    return ShardResult(dict(counts))


def _texts(task: NormalizeTask) -> Iterator[tuple[Any, Any]]:
    for path in task.texts:
        for batch in batches(Path(path), ["id", "text"]):
            yield from zip(batch.column("id").to_pylist(), batch.column("text").to_pylist(), strict=True)
