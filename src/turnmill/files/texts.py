"""Rendered texts in Parquet: `id, text`, and the template that wrote them in the file's metadata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

TEMPLATE_KEY = b"turnmill.template"
"""In a file's metadata: hex sha256 of the template."""


class Text(NamedTuple):
    """One text."""

    id: str
    text: str
    source_id: str | None
    """Of a normalised text: the conversation that it was rendered from."""


def text_schema(template: str, *, with_source_id: bool = False) -> pa.Schema:
    """`id, text`, both never null, and on request `source_id`; the template's hash beside them."""
    import pyarrow as pa

    fields = [pa.field("id", pa.string(), nullable=False), pa.field("text", pa.string(), nullable=False)]
    if with_source_id:
        fields.append(pa.field("source_id", pa.string()))
    return pa.schema(fields, metadata={TEMPLATE_KEY: template.encode()})


def texts_table(rows: Sequence[Text]) -> pa.Table:
    """Rows without `source_id` as a table."""
    return _table(rows, text_schema(""))


def sourced_texts_table(rows: Sequence[Text]) -> pa.Table:
    """Rows as a table."""
    return _table(rows, text_schema("", with_source_id=True))


def _table(rows: Sequence[Text], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    columns = [pa.array([getattr(row, field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def template_of(path: Path) -> str | None:
    """Hash of the template that wrote a file's texts, None where it does not say."""
    import pyarrow.parquet as pq

    found = (pq.read_schema(path).metadata or {}).get(TEMPLATE_KEY)
    return None if found is None else found.decode("ascii", "replace")
