"""prompts: what a dataset withholds and another one holds, under its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from turnmill.conversation import Json
from turnmill.errors import Rejected
from turnmill.files.plan import plan
from turnmill.files.read import records
from turnmill.files.tables import write_columns
from turnmill.options import Read
from turnmill.sources import sources
from turnmill.steps.shards import ShardResult

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
PROMPTS = "prompts.parquet"
DIGEST, PROMPT = "sha256", "prompt"
Found = TypeVar("Found")


class PromptsTask(NamedTuple):
    """The dataset that withholds prompts, and the one that holds them: path and name of each file."""

    source: str
    withholding: tuple[tuple[str, str], ...]
    holding: tuple[tuple[str, str], ...]


def run_shard(task: PromptsTask, folder: Path) -> ShardResult:
    """Write every prompt that the first dataset withholds and the second one holds, under its hash."""
    withheld = sources.get(task.source)().withheld
    assert withheld is not None
    wanted = {_of(withheld.wanted, record) for record in _values(task.source, task.withholding)} - {None}
    found: dict[str, str] = {}
    for record in _values(task.source, task.holding):
        for text in _of(withheld.texts, record) or ():
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            if digest in wanted:
                found[digest] = text
    columns = {DIGEST: sorted(found), PROMPT: [found[digest] for digest in sorted(found)]}
    write_columns(folder / PROMPTS, columns, prompts_schema())
    return ShardResult({"prompts/withheld": len(wanted), "prompts/found": len(found)})


def _values(source: str, files: tuple[tuple[str, str], ...]) -> Iterator[dict[str, Json]]:
    """Records of files that can be read; the others are rejected where the source is checked."""
    for shard in plan(source, files, Read()).shards:
        yield from (record.value for record in records(shard, Read()) if isinstance(record.value, dict))


def _of(look: Callable[[dict[str, Json]], Found], record: dict[str, Json]) -> Found | None:
    """What is looked for in a record; None in one of another shape, which the check of the source rejects."""
    try:
        return look(record)
    except (AttributeError, LookupError, TypeError, ValueError):
        return None


def prompt_of(path: str, digest: str) -> str:
    """The prompt of that hash.

    Raises:
        Rejected: `prompt-withheld`.
    """
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
