"""tokenize: checked rows to examples with one model: rendered, encoded, labelled and cut to length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnmill.conversation import Checked
from turnmill.errors import Rejected, UsageError
from turnmill.files.canonical import readmit, schema
from turnmill.files.examples import ExampleWriter
from turnmill.files.quarantine import Left, from_conversation
from turnmill.files.tables import BatchWriter, GroupRange, batches
from turnmill.models import LoadedModel, open_model
from turnmill.options import Fit, Loss, Model, Render, Source
from turnmill.rendered import Example, Kind, Rendered, Run
from turnmill.rendering.history import View
from turnmill.rendering.raw_text import Around
from turnmill.rendering.renderer import Renderer
from turnmill.steps.shards import ShardResult
from turnmill.tokens.encode import Encoder
from turnmill.tokens.fit import Part, chunks, fit
from turnmill.tokens.history import Asked, Histories, scaled, unscaled
from turnmill.tokens.markers import check_markers
from turnmill.tokens.tokenize import Row, Tokenizing
from turnmill.verbs.check import left_writer
from turnmill.verbs.split import Side, read_sides

if TYPE_CHECKING:
    from turnmill.config import Config

VERSION = 7
SIDES: tuple[Side, ...] = ("train", "eval")
TASK_ROWS = 2000
"""Rows of a task, however its source's files are cut: work for every core, and progress that moves."""
BATCH = 256
"""Rows that are encoded together."""
SAMPLES_PER_SHARD = 3
"""Rows of each source whose trained spans a shard reports."""
DEFAULT_MAX_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one source's rows become examples: all that a worker needs."""

    model: Model
    render: Render
    loss: Loss
    fit: Fit
    max_tokens: int
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    control_tokens: str | None = None


@dataclass(frozen=True, slots=True)
class TokenizeTask:
    """Some row groups of a file of checked rows of a source."""

    conversations: str
    groups: GroupRange
    sides: str
    recipe: Recipe
    columns: tuple[str, ...]
    fingerprint: str
    accelerate: bool = True


class Shown(NamedTuple):
    """One of several renders of a row, and the parts that train there."""

    conversation: Checked
    """Up to the turn it ends with; what trains elsewhere has weight 0."""
    rendered: Rendered
    parts: Sequence[Part]


class Made(NamedTuple):
    """What became of one row: it has parts, or a fault."""

    conversation: Checked
    rendered: Rendered | None = None
    parts: Sequence[Part] = ()
    """Its training examples, in order."""
    fault: Rejected | None = None
    stage: str = "render"
    views: Sequence[Shown] = ()
    """The renders that the parts are of, in order, where it is not the one render of the whole row."""


class Line:
    """One model's line from checked rows to examples; made once a process.

    Attributes:
        counts: `render/…`, `tokenize/…` and `fit/…` → how often.
    """

    def __init__(self, recipe: Recipe, *, accelerate: bool = False) -> None:
        self.model: LoadedModel = open_model(recipe.model)
        self.renderer = renderer_of(self.model, recipe.render, accelerate=accelerate)
        self.tokenizer = self.model.tokenizer()
        check_markers(self.tokenizer, self.renderer.probe, self.model.name)
        encoder = Encoder(self.tokenizer, self.renderer.probe.markers.control, accelerate=accelerate)
        self.tokenizing = Tokenizing(encoder)
        self._histories = Histories(self.renderer)
        self._fitted: Counter[str] = Counter()

    @property
    def counts(self) -> Counter[str]:
        """What was done to rows so far."""
        return self.renderer.counts + self.tokenizing.counts + self._histories.counts + self._fitted

    def accelerate(self, *, is_on: bool) -> None:
        """Replay renders and encode the fast way from now on, or neither: the first costs a second."""
        self.renderer.accelerate(is_on=is_on)
        self.tokenizing.encoder.accelerate(is_on=is_on)

    def clear(self) -> None:
        """Count from zero."""
        for counter in (self.renderer.counts, self.tokenizing.counts, self._histories.counts, self._fitted):
            counter.clear()

    def run(self, rows: Sequence[Checked], recipe: Recipe, ids: Sequence[str] | None = None) -> Iterator[Made]:
        """Each row's example, or why it has none, in order.

        Args:
            rows: checked conversations.
            recipe: of their source.
            ids: theirs, where they are stored beside them; they cost a hash each.
        """
        self._check_kinds(recipe.loss)
        rendered = [self._rendered(row, recipe) for row in rows]
        asked = Asked(recipe.render.history, recipe.loss, recipe.template_kwargs, recipe.control_tokens)
        ids = ids or [row.id for row in rows]
        shown = [
            self._histories.views(made.conversation, row_id, made.rendered, asked) if made.rendered is not None else []
            for made, row_id in zip(rendered, ids, strict=True)
        ]
        good = [
            Row(row_id, Checked(view.conversation), view.rendered, _loss_of(made, views, recipe.loss))
            for made, row_id, views in zip(rendered, ids, shown, strict=True)
            for view in views
        ]
        examples = iter(self.tokenizing.examples(good))
        for made, views in zip(rendered, shown, strict=True):
            found = list(islice(examples, len(views)))
            if _is_whole(made, views):
                if views[0].turns is None and isinstance(found[0], Example):
                    self._histories.count_stable(len(found[0].turn_ends))
                made = self._fit(made, found[0], recipe)
            elif views:
                made = self._fit_views(made, views, found, recipe)
            yield made

    def _check_kinds(self, loss: Loss) -> None:
        """Refuse to pick spans by kinds that are not known.

        Raises:
            UsageError: the template's turns are only known as a whole.
        """
        if self.renderer.probe.rung != "tracked" and (loss.observations or not loss.reasoning):
            option = "loss.observations" if loss.observations else "loss.reasoning"
            raise UsageError(
                f"{option} picks parts of a turn, but who wrote which part is not known with the template of "
                f"{self.model.name}: its text cannot be tracked",
                next_step="--template chatml",
            )

    def _rendered(self, row: Checked, recipe: Recipe) -> Made:
        try:
            return Made(row, self.renderer.render(row, recipe.template_kwargs, recipe.control_tokens))
        except Rejected as fault:
            return Made(row, fault=fault)

    def _fit(self, made: Made, example: Example | Rejected, recipe: Recipe) -> Made:
        if isinstance(example, Rejected):
            return made._replace(fault=example, stage="tokenize")
        if made.conversation.is_raw_text:
            return made._replace(parts=chunks(example, recipe.max_tokens, self._fitted))
        only_last = recipe.loss.turns == "last"
        try:
            parts = fit(example, recipe.fit, recipe.max_tokens, only_last=only_last, counts=self._fitted)
        except Rejected as fault:
            return made._replace(fault=fault, stage="fit")
        return made._replace(parts=parts)

    def _fit_views(
        self, made: Made, views: Sequence[View], examples: Sequence[Example | Rejected], recipe: Recipe
    ) -> Made:
        """The parts of a row's several examples, numbered through; it leaves where none of them is left.

        Under `overflow: drop`, or far too long, it leaves with the first that does not fit.
        """
        pairs = [(view, example) for view, example in zip(views, examples, strict=True) if isinstance(example, Example)]
        fault = next((example for example in examples if isinstance(example, Rejected)), None)
        weighed = scaled(made.conversation, recipe.loss, [example for _, example in pairs])
        shown: list[Shown] = []
        for (view, _), example in zip(pairs, weighed, strict=True):
            fitted = self._fit(made, example, recipe)
            if fitted.fault is None:
                first = sum(len(one.parts) for one in shown)
                parts = [_numbered(part, first + number) for number, part in enumerate(fitted.parts)]
                shown.append(Shown(Checked(view.conversation), view.rendered, parts))
            elif recipe.fit.overflow == "drop" or fitted.fault.code == "far-too-long":
                return fitted
            else:
                fault = fitted.fault
                self._fitted["fit/turns-too-long"] += len(example.turn_ends)
        if not shown:
            return made._replace(fault=fault, stage="tokenize" if not pairs else "fit")
        return made._replace(parts=[part for one in shown for part in one.parts], views=shown)


def _is_whole(made: Made, views: Sequence[View]) -> bool:
    """Whether the row trains in the one render of all of it."""
    return len(views) == 1 and views[0].conversation is made.conversation


def _loss_of(made: Made, views: Sequence[View], loss: Loss) -> Loss:
    return loss if _is_whole(made, views) else unscaled(loss)


def _numbered(part: Part, number: int) -> Part:
    return part._replace(example=msgspec.structs.replace(part.example, part=number))


def recipe_of(config: Config, source: Source, max_tokens: int = 0) -> Recipe:
    """How a source's rows become examples; `max_tokens` is 0 until a model is open."""
    own = config.of(source)
    return Recipe(
        model=config.model,
        render=own.render,
        loss=own.loss,
        fit=own.fit,
        max_tokens=max_tokens,
        template_kwargs=source.template_kwargs,
        control_tokens=source.control_tokens or source.render.get("control_tokens"),
    )


def renderer_of(model: LoadedModel, render: Render, *, accelerate: bool = False) -> Renderer:
    """The renderer of a model's template."""
    added = [(token.content, token.special) for token in model.added_tokens] if model.tokenizer_path else None
    name = f"the template of {model.name}"
    renderer = Renderer(model.template, model.special_tokens, model.eos, added, render, name, accelerate=accelerate)
    end = model.end_token if model.tokenizer_path else model.end_token or ""
    renderer.around = Around("".join(model.added_before), end)
    return renderer


def max_tokens_of(options: Fit, model: LoadedModel) -> int:
    """`fit.max_tokens`, or the lesser of 4096 and the model's context."""
    return options.max_tokens or min(DEFAULT_MAX_TOKENS, model.context_tokens or DEFAULT_MAX_TOKENS)


@lru_cache(maxsize=4)
def _line(key: bytes) -> Line:
    return Line(msgspec.json.decode(key, type=Recipe))


def line_of(recipe: Recipe, *, accelerate: bool | None = None) -> Line:
    """This process's line for a recipe's model and template.

    Args:
        recipe: model and template.
        accelerate: whether it is to be accelerated, which costs a second and pays for many rows; None: as it is.
    """
    line = _line(msgspec.json.encode(Recipe(recipe.model, recipe.render, Loss(), Fit(), 0)))
    if accelerate is not None:
        line.accelerate(is_on=accelerate)
    return line


def run_shard(task: TokenizeTask, folder: Path) -> ShardResult:
    """Write a file's examples and conversations, by side, and the rows that leave."""
    line = line_of(task.recipe, accelerate=task.accelerate)
    line.clear()
    counts: Counter[str] = Counter()
    samples: list[dict[str, Any]] = []
    examples = {side: ExampleWriter(folder / f"{side}.arrow") for side in SIDES}
    conversations = {side: BatchWriter(folder / f"{side}.parquet", schema(task.columns)) for side in SIDES}
    with left_writer(folder) as left:
        for batch in batches(Path(task.conversations), groups=range(task.groups.first, task.groups.end)):
            kept: dict[Side, list[int]] = {side: [] for side in SIDES}
            for index, side, made in _made(task, line, batch):
                _count(counts, side, made)
                if not made.parts:
                    left.write(left_of(made, task.fingerprint))
                    continue
                kept[side].append(index)
                for part in made.parts:
                    examples[side].write(part.example)
                if len(samples) < SAMPLES_PER_SHARD:
                    samples.append(sample_of(made, line.tokenizer))
            for side in SIDES:
                conversations[side].write(batch, kept[side])
    for side in SIDES:
        examples[side].close()
        conversations[side].close()
    counts.update(line.counts)
    return ShardResult(dict(counts), {"samples": samples})


def _made(task: TokenizeTask, line: Line, batch: Any) -> Iterator[tuple[int, Side, Made]]:
    """Every row of a stored batch that stays: its index there, its side, and what became of it."""
    numbers, ids = batch.column("row").to_pylist(), batch.column("id").to_pylist()
    sides = read_sides(Path(task.sides), numbers[0], numbers[-1])
    staying = [(index, row) for index, row in enumerate(readmit(batch)) if numbers[index] in sides]
    for start in range(0, len(staying), BATCH):
        part = staying[start : start + BATCH]
        made = line.run([row for _, row in part], task.recipe, [ids[index] for index, _ in part])
        for (index, _), one in zip(part, made, strict=True):
            yield index, sides[numbers[index]], one


def left_of(made: Made, fingerprint: str) -> Left:
    """A row that gave no example, as it leaves."""
    fault = made.fault or Rejected("no-trainable-tokens", "no example")
    return from_conversation(made.conversation, fault, stage=made.stage, config=fingerprint)


def _count(counts: Counter[str], side: Side, made: Made) -> None:
    """What became of one row; turns, and tokens by kind, of its examples."""
    if not made.parts:
        counts["rows/rejected"] += 1
        counts[f"rows/rejected-at-{made.stage}"] += 1
        counts[f"codes/{made.fault.code if made.fault else ''}"] += 1
        return
    counts[f"rows/{'accepted' if side == 'train' else 'eval'}"] += 1
    for example, _ in made.parts:
        counts[f"{side}/examples"] += 1
        counts[f"{side}/turns"] += len(example.turn_ends)
        counts[f"{side}/examples-of-turns/{len(example.turn_ends)}"] += 1
        for (kind, is_trained), tokens in _tokens_of_kinds(example.runs).items():
            counts[f"{side}/tokens/{kind}"] += tokens
            if is_trained:
                counts[f"{side}/trained/{kind}"] += tokens


def _tokens_of_kinds(runs: Sequence[Run]) -> dict[tuple[Kind, bool], int]:
    """(kind, whether they train) → tokens."""
    counts: dict[tuple[Kind, bool], int] = {}
    start = 0
    for run in runs:
        key = (run.kind, run.weight > 0)
        counts[key] = counts.get(key, 0) + run.end - start
        start = run.end
    return counts


def sample_of(made: Made, tokenizer: Any) -> dict[str, Any]:
    """The decoded trained stretches of a row's first example: what a person reads before the first training run."""
    if not made.parts:
        return {}
    example = made.parts[0].example
    stretches: list[list[int]] = []
    start, was_trained = 0, False
    for run in example.runs:
        if run.weight > 0:
            if not was_trained:
                stretches.append([])
            stretches[-1] += map(int, example.input_ids[start : run.end])
        start, was_trained = run.end, run.weight > 0
    decoded = [tokenizer.decode(stretch, skip_special_tokens=False) for stretch in stretches]
    return {"source": example.source, "row": made.conversation.meta["row"], "id": example.row_id, "trained": decoded}
