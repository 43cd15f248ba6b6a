"""A dialect behind a source's own conversion, and the prompts that the source withholds."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.conversation import Conversation, Json
from turnmill.dialects import Dialect, Reading
from turnmill.errors import Rejected
from turnmill.sources import Convert, PinnedSource, sources

if TYPE_CHECKING:
    import pyarrow as pa

DIGEST, PROMPT = "sha256", "prompt"


def adapted(name: str, prompts: str, dialect: Dialect) -> Dialect:
    """A dialect that reads what the source's conversion gives.

    Args:
        name: of the source, in the registry.
        prompts: file of withheld prompts; "" where none are.
        dialect: what reads a converted record.
    """
    convert = _convert_of(sources.get(name)(), prompts)

    def read(record: dict[str, Json], reading: Reading) -> Conversation:
        return dialect(convert(record), reading)

    return read


def _convert_of(source: PinnedSource, prompts: str) -> Convert:
    with_prompts = source.convert_with_prompts
    if with_prompts is not None:
        return lambda record: with_prompts(record, lambda digest: _prompt(prompts, digest))
    return source.convert or (lambda record: record)


def _prompt(path: str, digest: str) -> str:
    found = _prompts(path).get(digest)
    if found is None:
        raise Rejected("prompt-withheld", f"the dataset gives its prompt by hash alone ({digest[:16]}…): not found")
    return found


@lru_cache(maxsize=2)
def _prompts(path: str) -> dict[str, str]:
    import pyarrow.parquet as pq

    table = pq.read_table(Path(path))
    return dict(zip(table.column(DIGEST).to_pylist(), table.column(PROMPT).to_pylist(), strict=True))


def prompts_schema() -> pa.Schema:
    """The schema of withheld prompts: hex sha256 of the UTF-8 text, and the text."""
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.string(), nullable=False) for name in (DIGEST, PROMPT)])
