"""census: what a run would make of raw data, counted in this process without writing a file; or what OUT holds."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from turnmill.conversation import Checked
from turnmill.dedup import exchange_key, weights_key
from turnmill.errors import Rejected, StaleError
from turnmill.files.inventory import MANIFEST, is_published, read_manifest, verify
from turnmill.models import open_model
from turnmill.options import Filter
from turnmill.rendered import Kind, Loss
from turnmill.report.census import SAMPLES_PER_SOURCE, SourceCensus, Unit, census
from turnmill.tokens.loss import Policy
from turnmill.verbs.check import outcomes, tasks_of
from turnmill.verbs.decontaminate import Comparison, counts_of, index_of, open_evaluation
from turnmill.verbs.filter import settled, verdict
from turnmill.verbs.read import OpenSource
from turnmill.verbs.tokenize import BATCH, Line, Made, Recipe, max_tokens_of, recipe_of, renderer_of, sample_of

if TYPE_CHECKING:
    from turnmill.config import Config

REPORT = "report.json"


class Stretch(NamedTuple):
    """A stretch of one example: tokens, or characters."""

    kind: Kind
    size: int
    trains: bool


class Measured(NamedTuple):
    """One row's examples as the census counts them."""

    stretches: list[Stretch]
    turns: list[int]
    """Trained turns of each example."""
    sample: Callable[[], dict[str, Any]]
    lengths: list[int]
    """Of each example."""


class Engine(Protocol):
    """What makes examples of checked rows, and how they are measured."""

    def run(self, rows: list[Checked], recipe: Recipe) -> Iterator[Measured | Rejected]:
        """Each row's example, or why it has none, in order."""

    def counts(self) -> Counter[str]:
        """What was done to rows since this was asked last."""


def is_prepared(path: Path) -> bool:
    """Whether this is a folder that `prepare` published (or was, before somebody changed it)."""
    if not (path / MANIFEST).is_file():
        return False
    return (path / REPORT).is_file() or (is_published(path) and read_manifest(path).get("kind") == "prepared")


def of_folder(folder: Path) -> dict[str, Any]:
    """The census that `prepare` wrote to OUT.

    Raises:
        StaleError: files of OUT are missing or changed.
    """
    verify(folder, whole=False)
    try:
        found: dict[str, Any] = msgspec.json.decode((folder / REPORT).read_bytes())
    except (OSError, msgspec.DecodeError) as problem:
        raise StaleError(f"{folder / REPORT} cannot be read: {problem}") from problem
    return found


def not_counted(config: Config) -> list[str]:
    """The ways of losing rows that only `prepare` knows: they ask for all rows at once."""
    return ["near-duplicates"] if "near" in config.dedup.by else []


def of_data(
    opened: Sequence[OpenSource], config: Config, advance: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """The census of raw data: read, checked, filtered, deduplicated, decontaminated and made into examples.

    Nothing is held out.

    It never stops on a health limit. Memory grows with the ids and lengths of rows, never with their text.

    Args:
        opened: the sources of `config`.
        config: with a model, or a template alone: then characters are counted.
        advance: told how many rows were read.

    Raises:
        UsageError: no such model, a template that cannot be used, or evaluation data that cannot be read.
    """
    with comparing(config) as compare:
        counting = Counting(config, advance or (lambda _: None), compare)
        return census([counting.source(source) for source in opened], unit=counting.unit)


@contextmanager
def comparing(config: Config) -> Iterator[Comparison | None]:
    """What compares rows with the evaluation data, None where none are named."""
    evaluation = open_evaluation(config.decontaminate, config.read)
    if evaluation is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="turnmill-") as folder:
        index_of(evaluation, config.decontaminate, config.read, Path(folder))
        yield Comparison(Path(folder), config.decontaminate.ngram)


class TokenEngine:
    """Examples in tokens, with a model."""

    def __init__(self, recipe: Recipe) -> None:
        self._line = Line(recipe)

    def run(self, rows: list[Checked], recipe: Recipe) -> Iterator[Measured | Rejected]:
        """Each row's example, or why it has none, in order."""
        for made in self._line.run(rows, recipe):
            if made.parts:
                yield self._measured(made)
            else:
                yield made.fault or Rejected("no-trainable-tokens", "no example")

    def counts(self) -> Counter[str]:
        """What was done to rows since this was asked last."""
        counts = self._line.counts
        self._line.clear()
        return counts

    def _measured(self, made: Made) -> Measured:
        stretches: list[Stretch] = []
        for example, _ in made.parts:
            start = 0
            for run in example.runs:
                stretches.append(Stretch(run.kind, run.end - start, run.weight > 0))
                start = run.end
        lengths = [len(example.input_ids) for example, _ in made.parts]
        turns = [len(example.turn_ends) for example, _ in made.parts]
        return Measured(stretches, turns, lambda: sample_of(made, self._line.tokenizer), lengths)


class TextEngine:
    """Examples in characters, with a template alone: nothing is cut, for nobody knows how long a token is."""

    def __init__(self, recipe: Recipe) -> None:
        self._renderer = renderer_of(open_model(recipe.model), recipe.render)

    def run(self, rows: list[Checked], recipe: Recipe) -> Iterator[Measured | Rejected]:
        """Each row's text, or why it has none, in order."""
        for row in rows:
            try:
                yield self._measured(row, recipe)
            except Rejected as fault:
                yield fault

    def counts(self) -> Counter[str]:
        """What was done to rows since this was asked last."""
        counts = Counter(self._renderer.counts)
        self._renderer.counts.clear()
        return counts

    def _measured(self, row: Checked, recipe: Recipe) -> Measured:
        rendered = self._renderer.render(row, recipe.template_kwargs, recipe.control_tokens)
        policy = Policy(row, recipe.loss)
        trains = [policy.weight(span) > 0 for span in rendered.spans]
        if not any(trains):
            raise Rejected("no-trainable-tokens", "nothing of this row trains under its weights and the loss options")
        pairs = list(zip(rendered.spans, trains, strict=True))
        stretches = [Stretch(span.kind, span.end - span.start, trained) for span, trained in pairs]
        turns = len({policy.turn(span) for span, trained in pairs if trained} - {-1})
        texts = _joined((rendered.text[span.start : span.end], trained) for span, trained in pairs)
        sample = {"source": row.source, "row": row.meta["row"], "id": row.id, "trained": texts}
        return Measured(stretches, [turns], lambda: sample, [sum(stretch.size for stretch in stretches)])


def _joined(pieces: Iterable[tuple[str, bool]]) -> list[str]:
    """The texts of the trained stretches: pieces that train and touch are one."""
    texts: list[str] = []
    was_trained = False
    for piece, trains in pieces:
        if trains and was_trained:
            texts[-1] += piece
        elif trains:
            texts.append(piece)  # pieces are joined, not only kept
        was_trained = trains
    return texts


class Counting:
    """One census in the making: the sources in order, and the ids that were met so far."""

    def __init__(self, config: Config, advance: Callable[[int], None], compare: Comparison | None) -> None:
        self._config, self._advance, self._compare = config, advance, compare
        self._seen: dict[bytes, str] = {}
        self._exchanges: set[str] = set()
        model = open_model(config.model)
        self._max_tokens = max_tokens_of(config.fit, model)
        self.unit: Unit = "tokens" if model.tokenizer_path else "characters"
        self._engines: dict[bytes, Engine] = {}

    def source(self, opened: OpenSource) -> SourceCensus:
        """What was counted of one source."""
        counts: Counter[str] = Counter()
        found = SourceCensus(opened.source.name, counts, [], [])
        recipe, rows = recipe_of(self._config, opened.source, self._max_tokens), self._kept(opened, counts)
        engine = self._engine(recipe)
        while batch := list(islice(rows, BATCH)):
            for measured in engine.run(self._clean(batch, counts), recipe):
                if isinstance(measured, Rejected):
                    _leaves(counts, "rejected", measured.code)
                else:
                    self._count(found, measured)
        counts.update(engine.counts())
        return found

    def _engine(self, recipe: Recipe) -> Engine:
        """What makes examples under the recipe's `render` options; one for all sources that share them."""
        key = msgspec.json.encode(recipe.render)
        if key not in self._engines:
            made = Recipe(recipe.model, recipe.render, Loss(), recipe.fit, self._max_tokens)
            self._engines[key] = TokenEngine(made) if self.unit == "tokens" else TextEngine(made)
        return self._engines[key]

    def _kept(self, opened: OpenSource, counts: Counter[str]) -> Iterator[Checked]:
        """The rows that come through check, filter and dedup; those that do not are counted."""
        options = settled(self._config.of(opened.source).filter)
        for task in tasks_of(opened, self._config):
            for outcome in outcomes(task, counts):
                checked, fault = outcome.checked, outcome.fault
                counts["rows/read"] += 1
                self._advance(1)
                leaves = ("rejected", fault.code) if fault is not None else self._leaves_later(checked, options)
                if leaves is not None:
                    _leaves(counts, *leaves)
                elif checked is not None:
                    yield checked

    def _clean(self, rows: list[Checked], counts: Counter[str]) -> list[Checked]:
        """Those of the rows that say nothing of the evaluation data; the others are counted."""
        if self._compare is None:
            return rows
        found = {one.number: one for one in self._compare([[message.text for message in row.messages] for row in rows])}
        for number, one in found.items():
            counts.update(counts_of(one, rows[number], one.fault(rows[number]).code))
        return [row for number, row in enumerate(rows) if number not in found]

    def _leaves_later(self, row: Checked | None, options: Filter) -> tuple[str, str] | None:
        """Class and code of a checked row that a filter or dedup lets go."""
        if row is None:
            return None
        filtered = verdict(row, options)
        if filtered is not None:
            return filtered[0], filtered[1].code
        code = self._repeats(row)
        return ("duplicate", code) if code else None

    def _repeats(self, row: Checked) -> str | None:
        """The code of a row that repeats one before; else it is remembered."""
        if "exact" in self._config.dedup.by:
            key, weights = bytes.fromhex(row.id), weights_key(row)
            if key in self._seen:
                return "duplicate" if self._seen[key] == weights else "duplicate-other-weights"
            self._seen[key] = weights
        if "first-exchange" in self._config.dedup.by and (exchange := exchange_key(row)):
            if exchange in self._exchanges:
                return "duplicate-first-exchange"
            self._exchanges.add(exchange)
        return None

    def _count(self, found: SourceCensus, measured: Measured) -> None:
        counts = found.counters
        counts["rows/accepted"] += 1
        counts["train/examples"] += len(measured.lengths)
        counts["train/turns"] += sum(measured.turns)
        for turns in measured.turns:
            counts[f"train/examples-of-turns/{turns}"] += 1
        for kind, size, trains in measured.stretches:
            counts[f"train/{self.unit}/{kind}"] += size
            counts[f"train/trained/{kind}"] += size if trains else 0
        found.lengths += measured.lengths
        if len(found.samples) < SAMPLES_PER_SOURCE:
            found.samples.append(measured.sample())


def _leaves(counts: Counter[str], class_: str, code: str) -> None:
    counts[f"rows/{class_}"] += 1
    counts[f"codes/{code}"] += 1
