"""decontaminate on raw data: what evaluation data would take out of a run, told without writing a file."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.conversation import Checked, Json
from turnmill.errors import UsageError
from turnmill.ngrams import words
from turnmill.verbs.decontaminate import BATCH, Compared, Comparison, counts_of, index_of, open_evaluation, warnings
from turnmill.verbs.read import OpenSource
from turnmill.verbs.rows import ReadRow, rows_of

if TYPE_CHECKING:
    from turnmill.config import Config


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row that says what an evaluation item says."""

    row: ReadRow
    found: Compared
    code: str
    message: str

    def as_json(self) -> dict[str, Json]:
        """One entry of the answer of `decontaminate --json`."""
        record, found = self.row.record, self.found
        return {
            "row": record.row,
            "source": record.source,
            "source_file": record.source_file,
            "source_line": record.source_line,
            "code": self.code,
            "message": self.message,
            "evaluation_file": found.file,
            "evaluation_line": found.line,
            "words": found.hit.words,
            "shared_ngrams": found.hit.shared,
        }


@dataclass(slots=True)
class Overlaps:
    """What was found, source by source."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """By source: `rows/read`, `rows/compared`, `words/compared`, and what the step counts of rows that leave."""
    warnings: list[str] = field(default_factory=list)

    def per_source(self) -> dict[str, dict[str, int]]:
        """Rows and words of each source, and those that would leave."""
        return {
            name: {
                "read": counts["rows/read"],
                "compared": counts["rows/compared"],
                "contaminated": counts["rows/contaminated"],
                "words": counts["words/compared"],
                "contaminated_words": counts["decontaminate/words"],
            }
            for name, counts in self.counts.items()
        }

    def per_file(self) -> dict[str, int]:
        """Evaluation file → rows that would leave because of it, the most first."""
        together: Counter[str] = Counter()
        for counts in self.counts.values():
            by = "decontaminate/by/"
            together.update({key.removeprefix(by): n for key, n in counts.items() if key.startswith(by)})
        return dict(sorted(together.items(), key=lambda item: (-item[1], item[0])))


def overlaps(
    opened: Sequence[OpenSource], config: Config, found: Overlaps, advance: Callable[[int], None] | None = None
) -> Iterator[FoundRow]:
    """The rows behind check and filters that say what an evaluation item says, in order; duplicates too.

    Args:
        opened: the sources.
        config: with `decontaminate.against`.
        found: takes the counts.
        advance: told how many rows were read.

    Raises:
        UsageError: no evaluation data are named, or they cannot be read.
    """
    evaluation = open_evaluation(config.decontaminate, config.read)
    if evaluation is None:
        raise UsageError("no evaluation data named; expected files to compare with", next_step="--against FILE")
    with tempfile.TemporaryDirectory(prefix="turnmill-") as folder:
        result = index_of(evaluation, config.decontaminate, config.read, Path(folder))
        found.warnings += warnings(result)
        compare = Comparison(Path(folder), config.decontaminate.ngram)
        for source in opened:
            counts = found.counts.setdefault(source.source.name, Counter())
            rows = rows_of(source, config, counts)
            while batch := list(islice(rows, BATCH)):
                (advance or (lambda _: None))(len(batch))
                yield from _found(batch, compare, counts)


def _found(batch: Sequence[ReadRow], compare: Comparison, counts: Counter[str]) -> Iterator[FoundRow]:
    staying: list[tuple[ReadRow, Checked]] = [
        (row, row.checked) for row in batch if row.fault is None and row.checked is not None
    ]
    texts = [[message.text for message in checked.messages] for _, checked in staying]
    counts["rows/compared"] += len(texts)
    counts["words/compared"] += sum(len(words(text)) for row in texts for text in row)
    for one in compare(texts):
        row, checked = staying[one.number]
        fault = one.fault(checked)
        counts.update(counts_of(one, checked, fault.code))
        yield FoundRow(row, one, fault.code, fault.message)
