"""filter: rows a model should not learn from leave; for those that stay, the keys that dedup and split need."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnmill.conversation import Checked, Json
from turnmill.dedup import exchange_key, weights_key
from turnmill.errors import Rejected, UnknownName, UsageError
from turnmill.files.canonical import readmit
from turnmill.files.phrases import read_phrases, shipped, shipped_languages
from turnmill.files.quarantine import LeftClass, from_conversation
from turnmill.files.tables import TableWriter, batches
from turnmill.filters import filters
from turnmill.filters.language import KNOWN
from turnmill.filters.phrases import at_sentence, at_start
from turnmill.filters.product_names import patterns as product_patterns
from turnmill.options import Filter, Phrases, ProductNames
from turnmill.split import group_key
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.check import left_writer

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 3
INDEX = "index.parquet"
STALLED = "stalled-tool-call"
"""The filter whose rows have a class of their own in the counts."""


@dataclass(frozen=True, slots=True)
class FilterTask:
    """One file of checked rows."""

    conversations: str
    filter: Filter
    group_field: str | None
    fingerprint: str


class IndexRow(NamedTuple):
    """What later steps need to know of a checked row."""

    row: int
    source: str
    source_file: str
    source_line: int
    id: str
    weights: str
    group: int
    """Key of its prompt group, 64 bits."""
    exchange: str
    """Key of its first user text and first assistant turn."""
    kept: bool
    """False: a filter let it go."""


@cache
def index_schema() -> pa.Schema:
    """The schema of the index."""
    import pyarrow as pa

    kinds = {"row": pa.int64(), "source_line": pa.int64(), "group": pa.uint64(), "kept": pa.bool_()}
    return pa.schema([pa.field(name, kinds.get(name, pa.string()), nullable=False) for name in IndexRow._fields])


def _index_table(rows: list[IndexRow]) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pylist([row._asdict() for row in rows], schema=index_schema())


def settled(options: Filter) -> Filter:
    """The options as filters take them: lists that are shipped or lie in files are read, names are known.

    Raises:
        UnknownName: no such filter, no phrases of a language, or a language that is not told apart.
        UsageError: a file cannot be read, or a phrase has unmatched braces.
    """
    for name in options.use:
        filters.get(name)
    for language in options.language.keep:
        if language not in KNOWN:
            raise UnknownName("language", language, KNOWN, next_step="--filter.language.keep '[en]'")
    changed: dict[str, Any] = {}
    if "refusals" in options.use:
        changed["refusals"] = _phrases("refusals", options.refusals)
        _require_readable(at_start, changed["refusals"].phrases)
    if "boilerplate" in options.use:
        changed["boilerplate"] = _phrases("boilerplate", options.boilerplate)
        _require_readable(at_sentence, changed["boilerplate"].phrases)
    if "product-names" in options.use:
        changed["product_names"] = _names(options.product_names)
        _require_readable(at_sentence, *product_patterns(changed["product_names"]))
    return dataclasses.replace(options, **changed)


def _phrases(kind: str, given: Phrases) -> Phrases:
    own = (*given.phrases, *(phrase for path in given.files for phrase in read_phrases(path)))
    return Phrases(languages=(), phrases=(*shipped_languages(kind, given.languages), *own))


def _names(given: ProductNames) -> ProductNames:
    phrases = (*shipped_languages("product-names", given.languages), *given.phrases)
    names, ambiguous, makers = (
        tuple(name for name in shipped(kind) if name not in given.allow) for kind in ("names", "ambiguous", "makers")
    )
    return ProductNames((), phrases, (*names, *given.names), (*ambiguous, *given.ambiguous), (*makers, *given.makers))


def _require_readable(compile_phrases: Callable[..., object], *phrases: object) -> None:
    try:
        compile_phrases(*phrases)
    except ValueError as problem:
        raise UsageError(str(problem), next_step="turnmill config schema") from None


def step_of(check: Step, options: Filter, group_field: str | None) -> Step:
    """The recipe of a source's index; `options` are settled."""
    sections = {name: getattr(options, name.replace("-", "_"), None) for name in options.use}
    params: dict[str, Json] = {
        "use": [filters.identity(name) for name in options.use],
        "options": {name: msgspec.to_builtins(given) for name, given in sections.items() if given is not None},
        "group_field": group_field,
    }
    return Step("filter", VERSION, params, (check.fingerprint,))


def verdict(conversation: Checked, options: Filter) -> tuple[LeftClass, Rejected] | None:
    """Why a row leaves, of the first filter that lets it go; None keeps it. `options` are settled."""
    for name in options.use:
        fault = filters.get(name)(conversation, options)
        if fault is not None:
            return ("stalled" if name == STALLED else "filtered"), fault
    return None


def run_shard(task: FilterTask, folder: Path) -> ShardResult:
    """Write the index of one file, and the rows that leave."""
    counts: Counter[str] = Counter()
    index: TableWriter[IndexRow] = TableWriter(folder / INDEX, index_schema(), _index_table)
    with index, left_writer(folder) as left:
        for batch in batches(Path(task.conversations)):
            for conversation, row_id in zip(readmit(batch), batch.column("id").to_pylist(), strict=True):
                leaves = verdict(conversation, task.filter)
                if leaves is not None:
                    class_, fault = leaves
                    counts[f"rows/{class_}"] += 1
                    counts[f"codes/{fault.code}"] += 1
                    left.write(
                        from_conversation(conversation, fault, stage="filter", config=task.fingerprint, class_=class_)
                    )
                index.write(_index_row(conversation, row_id, task.group_field, kept=leaves is None))
    return ShardResult(dict(counts))


def _index_row(conversation: Checked, row_id: str, group_field: str | None, *, kept: bool) -> IndexRow:
    meta: dict[str, Any] = conversation.meta
    return IndexRow(
        row=meta["row"],
        source=conversation.source,
        source_file=meta["source_file"],
        source_line=meta["source_line"],
        id=row_id,
        weights=weights_key(conversation),
        group=group_key(conversation, group_field),
        exchange=exchange_key(conversation),
        kept=kept,
    )
