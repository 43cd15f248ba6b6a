"""decontaminate: rows that say what evaluation data say leave, each with the item's file and line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnmill.conversation import NOT_RECORDED, Checked, Json
from turnmill.decontaminate import Hit, Index, Indexing, Item, Overlap, item_of
from turnmill.dialects import Mapping
from turnmill.dialects.detect import detect
from turnmill.errors import Rejected, UsageError
from turnmill.files.arrays import SIGNED, UNSIGNED, ArrayWriter, open_array
from turnmill.files.canonical import readmit, stored_messages
from turnmill.files.plan import is_plain_text, plan
from turnmill.files.quarantine import from_conversation
from turnmill.files.read import records
from turnmill.files.record import Record, Shard, SourcePlan
from turnmill.files.storage import look_at
from turnmill.files.tables import GroupRange, batches, group_ranges, write_columns
from turnmill.ngrams import words
from turnmill.options import Decontaminate, Read
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.built import Builder, Built
from turnmill.verbs.check import CONVERSATIONS, left_writer
from turnmill.verbs.dedup import DUPLICATES, lost_rows
from turnmill.verbs.filter import INDEX

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
EVALUATION_VERSION = 1
NAME = "evaluation"
"""What the evaluation data are called where a source has a name."""
LINES, FIELDS = "lines", "fields"
"""Kinds of evaluation files beside dialects: an item a line of text; records whose texts all count."""
SAMPLE_RECORDS = 100
ITEMS, HASHES, HASHED_ITEMS = "items.parquet", "hashes.bin", "items.bin"
TASK_ROWS = 20_000
BATCH = 1000


class Evaluation(NamedTuple):
    """The evaluation data, found and hashed."""

    plan: SourcePlan
    kinds: dict[str, str]
    """File → its dialect, `lines` or `fields`."""


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """All evaluation files: n-grams are told apart over all of them."""

    shards: tuple[Shard, ...]
    kinds: dict[str, str]
    read: Read
    ngram: int


@dataclass(frozen=True, slots=True)
class DecontaminateTask:
    """Some row groups of a file of checked rows, and of its index."""

    conversations: str
    index: str
    groups: GroupRange
    duplicates: str
    evaluation: str
    """The folder that `index_items` wrote."""
    ngram: int
    fingerprint: str


def open_evaluation(options: Decontaminate, read: Read) -> Evaluation | None:
    """The evaluation data that rows are compared with, None where none are named.

    Raises:
        UsageError: nothing found, or a file is unreadable or empty.
    """
    if not options.against:
        return None
    found = plan(NAME, options.against, read, plain_text=True)
    first: dict[str, Shard] = {}
    for shard in found.shards:
        first.setdefault(shard.name, shard)
    return Evaluation(found, {name: _kind_of(shard, read) for name, shard in first.items()})


def _kind_of(shard: Shard, read: Read) -> str:
    if is_plain_text(shard.name):
        return LINES
    good = (record.value for record in records(shard, read) if record.value is not None)
    try:
        return detect(list(islice(good, SAMPLE_RECORDS)), Mapping()).name
    except UsageError:
        return FIELDS


def evaluation_step(found: Evaluation, options: Decontaminate) -> Step:
    """The recipe of the index of the evaluation items."""
    params: dict[str, Json] = {"ngram": options.ngram, "kinds": dict(found.kinds)}
    return Step("evaluation", EVALUATION_VERSION, params, found.plan.inputs)


def index_items(task: EvaluationTask, folder: Path) -> ShardResult:
    """Write the n-grams of all evaluation items, and where each item stands.

    Raises:
        UsageError: an item cannot be read, or none says enough to be compared.
    """
    import pyarrow as pa

    indexing = Indexing(task.ngram)
    places: list[tuple[str, int]] = []
    for batch in _batches_of(_items(task)):
        indexing.add([item for _, item in batch])
        places += [place for place, _ in batch]
    index = indexing.index()
    if not len(index.hashes):
        raise UsageError("no evaluation item says three words or more; expected texts to compare rows with")
    for name, numbers, kind in ((HASHES, index.hashes, UNSIGNED), (HASHED_ITEMS, index.items, SIGNED)):
        with ArrayWriter(folder / name, kind) as out:
            out.write(numbers)
    schema = pa.schema([pa.field("file", pa.string(), nullable=False), pa.field("line", pa.int64(), nullable=False)])
    write_columns(folder / ITEMS, {"file": [file for file, _ in places], "line": [line for _, line in places]}, schema)
    return ShardResult({"decontaminate/items": len(places), "decontaminate/items-too-short": index.skipped})


def _batches_of(items: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(items, BATCH)):
        yield batch


def _items(task: EvaluationTask) -> Iterator[tuple[tuple[str, int], Item]]:
    for shard in task.shards:
        kind = task.kinds[shard.name]
        for record in records(shard, task.read):
            item = _line_item(record, shard) if kind == LINES else _record_item(record, shard, kind)
            yield (record.source_file, record.source_line), item


def _line_item(record: Record, shard: Shard) -> Item:
    try:
        text = record.raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise _unreadable(record, shard, f"it is not UTF-8 ({problem.reason})") from problem
    if record.fatal:
        raise _unreadable(record, shard, record.fault.message if record.fault else "")
    return Item((text,), text)


def _record_item(record: Record, shard: Shard, kind: str) -> Item:
    if record.value is None:
        raise _unreadable(record, shard, record.fault.message if record.fault else "")
    return item_of(record.value, None if kind == FIELDS else kind)


def _unreadable(record: Record, shard: Shard, why: str) -> UsageError:
    what = f"evaluation item {record.source_file}:{record.source_line} cannot be read: {why}"
    meant = "rows that say what it says would stay; expected JSON or Parquet, or text, an item a line, in a .txt file"
    return UsageError(f"{what}; {meant}", next_step=look_at(shard.path))


class Compared(NamedTuple):
    """A row that says what an evaluation item says."""

    number: int
    """In the rows that were given."""
    hit: Hit
    file: str
    """Of the item."""
    line: int

    def fault(self, row: Checked) -> Rejected:
        """Why the row leaves."""
        at = row.messages[self.hit.text].recorded
        return self.hit.fault(f"{self.file}:{self.line}", None if at == NOT_RECORDED else at)


class Comparison:
    """Compares rows with the evaluation items.

    Args:
        folder: what `index_items` wrote.
        ngram: words of an n-gram.
    """

    def __init__(self, folder: Path, ngram: int) -> None:
        hashes, items = open_array(folder / HASHES, UNSIGNED), open_array(folder / HASHED_ITEMS, SIGNED)
        self._overlap = Overlap(Index(hashes, items, 0), ngram)
        self._places = folder / ITEMS
        self._table: pa.Table | None = None

    def __call__(self, rows: Sequence[Sequence[str]]) -> list[Compared]:
        """Those of the rows, given as the texts of their messages, that say what an item says."""
        hits = self._overlap.hits(rows)
        return [Compared(number, hit, *self._place(hit.item)) for number, hit in enumerate(hits) if hit]

    def _place(self, item: int) -> tuple[str, int]:
        import pyarrow.parquet as pq

        if self._table is None:
            self._table = pq.read_table(self._places)
        return self._table.column("file")[item].as_py(), self._table.column("line")[item].as_py()


@lru_cache(maxsize=1)
def _comparison(folder: str, ngram: int) -> Comparison:
    return Comparison(Path(folder), ngram)


def step_of(checked: Step, dedup: Step, evaluation: Step) -> Step:
    """The recipe of the rows of a source that leave; the index of the evaluation items says how they are compared."""
    return Step("decontaminate", VERSION, {}, (checked.fingerprint, dedup.fingerprint, evaluation.fingerprint))


def run_shard(task: DecontaminateTask, folder: Path) -> ShardResult:
    """Write the rows that leave, of those that filters and dedup leave."""
    counts: Counter[str] = Counter()
    compare = _comparison(task.evaluation, task.ngram)
    with left_writer(folder) as left:
        for batch, staying in _staying(task):
            listed = list(stored_messages(batch.column("messages")))
            texts = [[message[1] for message in listed[index]] for index in staying]
            found = compare(texts)
            rows = readmit(batch.take([staying[one.number] for one in found])) if found else []
            for one, row in zip(found, rows, strict=True):
                fault = one.fault(row)
                left.write(
                    from_conversation(row, fault, stage="decontaminate", config=task.fingerprint, class_="contaminated")
                )
                counts.update(counts_of(one, row, fault.code))
    return ShardResult(dict(counts))


def counts_of(found: Compared, row: Checked, code: str) -> dict[str, int]:
    """What is counted of a row that leaves."""
    return {
        "rows/contaminated": 1,
        f"codes/{code}": 1,
        f"decontaminate/by/{found.file}": 1,
        "decontaminate/words": sum(len(words(message.text)) for message in row.messages),
    }


def _staying(task: DecontaminateTask) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
    """Each stored batch, with the rows of it that filters and dedup leave."""
    groups = range(task.groups.first, task.groups.end)
    indexed = list(batches(Path(task.index), ["row", "kept"], groups))
    lost = lost_rows(Path(task.duplicates), indexed[0]["row"][0].as_py(), indexed[-1]["row"][-1].as_py())
    for index, batch in zip(indexed, batches(Path(task.conversations), groups=groups), strict=True):
        pairs = zip(index.column("row").to_pylist(), index.column("kept").to_pylist(), strict=True)
        yield batch, [number for number, (row, kept) in enumerate(pairs) if kept and row not in lost]


def build_evaluation(builder: Builder, found: Evaluation, options: Decontaminate, read: Read) -> Built:
    """The index of the evaluation items: made first, so that what cannot be read ends a run before any work."""
    step = evaluation_step(found, options)
    return builder.build(step, [EvaluationTask(found.plan.shards, found.kinds, read, options.ngram)], index_items)


def index_of(found: Evaluation, options: Decontaminate, read: Read, folder: Path) -> ShardResult:
    """What `index_items` counts, its files written to a folder of no step."""
    return index_items(EvaluationTask(found.plan.shards, found.kinds, read, options.ngram), folder)


def build_source(builder: Builder, checked: Built, filtered: Built, deduped: Built, evaluation: Built) -> Built:
    """The rows of a source that leave."""
    step = step_of(filtered.step, deduped.step, evaluation.step)
    duplicates, folder = str(deduped.file(DUPLICATES)[0]), str(evaluation.file("")[0])
    ngram = evaluation.step.params["ngram"]
    files = zip(checked.file(CONVERSATIONS), filtered.file(INDEX), strict=True)
    tasks = [
        DecontaminateTask(str(path), str(index), groups, duplicates, folder, ngram, step.fingerprint)
        for path, index in files
        for groups in group_ranges(path, TASK_ROWS)
    ]
    return builder.build(step, tasks, run_shard, rows=[task.groups.rows for task in tasks])


def warnings(result: ShardResult) -> list[str]:
    """What a person should know of the evaluation data."""
    items, short = (result.counters.get(f"decontaminate/{name}", 0) for name in ("items", "items-too-short"))
    if not short:
        return []
    return [f"decontaminate: {short:,} of {items:,} evaluation items have too few words to be compared"]
