"""prepare: the line in order, from raw files to packed, masked training data with a full account of it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from turnmill.conversation import Json
from turnmill.errors import HealthError, UsageError, shell_word
from turnmill.executors import executors
from turnmill.files.disk import beside
from turnmill.files.inventory import rows_of, verify
from turnmill.files.selection import SELECTION
from turnmill.files.stores import is_url
from turnmill.files.tables import group_ranges
from turnmill.mix import stored
from turnmill.models import LoadedModel, open_model
from turnmill.options import KEEP_ALL, Render
from turnmill.repairs.mender import alarms
from turnmill.selection import ORDERED
from turnmill.steps.build import Engine, Finish, Progress, build, no_finish
from turnmill.steps.manifest import Manifest, manifest_of
from turnmill.steps.shards import RESULT, RunShard, ShardResult, shard_folder
from turnmill.steps.step import Step
from turnmill.verbs import check, dedup, filter, mix, pack, score, select, select_rows, split, tokenize
from turnmill.verbs.read import OpenSource, open_sources, with_columns_named
from turnmill.verbs.tokenize import Recipe

if TYPE_CHECKING:
    from turnmill.config import Config

MAX_UNSAYABLE = 0.05
"""Share of a source's rows that the template may fail to say before a run stops."""
MIN_UNSAYABLE_ROWS = 20
TEXT_HOLDS_CONTROL_TOKENS = "text-holds-control-tokens"


@dataclass(frozen=True, slots=True)
class Built:
    """A step that has run: its folder, its recipe, and what its shards reported."""

    step: Step
    folder: Path
    results: tuple[ShardResult, ...]

    @property
    def counters(self) -> dict[str, Json]:
        """Sums over the shards."""
        return self.manifest.counters

    @property
    def manifest(self) -> Manifest:
        """The step's manifest."""
        return manifest_of(self.folder)

    def file(self, name: str) -> tuple[Path, ...]:
        """That file of every shard, in order."""
        return tuple(shard_folder(self.folder, number) / name for number in range(len(self.results)))


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do: nothing is written yet."""

    config: Config
    sources: list[OpenSource]
    model: LoadedModel
    max_tokens: int
    recipes: dict[str, Recipe]
    """By source."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A finished run before it is published."""

    checks: dict[str, Built]
    filters: dict[str, Built]
    dedup: Built
    split: Built
    tokenized: dict[str, Built]
    examples: dict[str, Built]
    """What trains, by source: the tokenized rows, or those of them that were selected."""
    pack: Built
    scores: dict[str, Built] = field(default_factory=dict)
    """By source; empty where nothing is scored."""
    selection: Built | None = None
    """None where every row stays."""

    @property
    def sides(self) -> tuple[str, ...]:
        """Whose examples there may be, in the order of the packs."""
        return sides_of(self.selection)

    @property
    def steps(self) -> list[Built]:
        """Every step, in the order of the line."""
        first = [*self.checks.values(), *self.filters.values(), self.dedup, self.split, *self.tokenized.values()]
        chosen = [] if self.selection is None else [self.selection, *self.examples.values()]
        return [*first, *self.scores.values(), *chosen, self.pack]


def sides_of(selection: Built | None) -> tuple[str, ...]:
    """The sides that a run packs: a control only where a selection drew one."""
    has_control = selection is not None and selection.counters["select/control"]
    return (*tokenize.SIDES, select_rows.CONTROL) if has_control else tokenize.SIDES


def plan_of(config: Config) -> Plan:
    """Open the sources and the model, and prove that the template can be used.

    Raises:
        UsageError: a source, the model or an option cannot be used; nothing was written.
    """
    if not config.sources:
        raise UsageError(
            "no data given: expected files, or `sources` in the config", next_step="turnmill prepare --help"
        )
    if config.model.name_or_path is None:
        raise UsageError("no model given: prepare needs its tokenizer and template", next_step="--model smollm2")
    for own in map(config.of, config.sources):
        filter.settled(own.filter)
        if config.read.keep_columns != KEEP_ALL:
            split.require_usable(own.split, check.kept_columns(config.read))
    model = open_model(config.model)
    max_tokens = tokenize.max_tokens_of(config.fit, model)
    recipes = {source.name: tokenize.recipe_of(config, source, max_tokens) for source in config.sources}
    for recipe in recipes.values():
        tokenize.line_of(recipe)
    opened = open_sources(config)
    config = with_columns_named(config, opened)
    for source in config.sources:
        split.require_usable(config.of(source).split, check.kept_columns(config.read))
    select.require_usable(config, check.kept_columns(config.read))
    if score.is_on(config):
        score.scorer_of(score.options_of(config), config.model)
    return Plan(config, opened, model, max_tokens, recipes)


def cache_of(output: Path, cache: Path | None) -> Path:
    """Where step folders lie: `--cache`, or a hidden sibling of OUT.

    Raises:
        UsageError: it lies inside OUT, which is replaced whole.
    """
    place = Path(os.path.realpath(output))
    if cache is None:
        return beside(place, "steps")
    if Path(os.path.realpath(cache)).is_relative_to(place):
        what = f"the cache {cache} lies inside the output {output}, which is replaced whole; expected another place"
        raise UsageError(what, next_step=f"--cache {shell_word(beside(place, 'steps'))}")
    return cache


def refuse_inputs_inside(plan: Plan, output: Path) -> None:
    """Refuse to replace a folder that the run reads from.

    Raises:
        UsageError: a file of a source lies inside OUT, which is replaced whole.
    """
    place = Path(os.path.realpath(output))
    for path in (file.path for opened in plan.sources for file in opened.plan.files if not is_url(file.path)):
        if Path(os.path.realpath(path)).is_relative_to(place):
            what = f"{path} lies inside the output {output}, which is replaced whole; expected another place"
            raise UsageError(what, next_step=f"--output {shell_word(f'{place}-again')}")


def run(plan: Plan, cache: Path, progress: Progress | None = None) -> Prepared:
    """Build every step that is not there already.

    Raises:
        HealthError: a source lost too many rows, or the template cannot say too many; nothing is published.
    """
    config = plan.config
    engine = Engine(executors.get("local"), config.workers or os.cpu_count() or 1, progress)
    builder = _Builder(cache, engine)
    checks = {opened.source.name: _check(builder, plan, opened) for opened in plan.sources}
    filters = {
        opened.source.name: _filter(builder, config.of(opened.source), checks[opened.source.name])
        for opened in plan.sources
    }
    names = tuple(checks)
    conversations = tuple(str(path) for checked in checks.values() for path in checked.file(check.CONVERSATIONS))
    indexes = tuple(str(path) for filtered in filters.values() for path in filtered.file(filter.INDEX))
    step = dedup.step_of([filtered.step for filtered in filters.values()], config.dedup)
    task = dedup.DedupTask(indexes, conversations, names, config.dedup, step.fingerprint)
    deduped = builder.build(step, [task], dedup.run_shard)
    duplicates = str(deduped.file(dedup.DUPLICATES)[0])
    own = split.own_splits(config)
    step = split.step_of(deduped.step, config.split, own)
    sided = builder.build(step, [split.SplitTask(indexes, duplicates, names, config.split, own)], split.run_shard)
    tokenized = {name: _tokenize(builder, plan, name, checked, sided) for name, checked in checks.items()}
    scored = tokenized if score.is_on(config) else {}
    scores = {name: _score(builder, plan, name, built) for name, built in scored.items()}
    selection = _select(builder, plan, tokenized, scores) if select.is_on(config) else None
    examples = tokenized if selection is None else _selected(builder, tokenized, selection)
    packed = _pack(builder, plan, examples, selection)
    return Prepared(checks, filters, deduped, sided, tokenized, examples, packed, scores, selection)


class _Builder:
    """Builds steps in one cache with one engine."""

    def __init__(self, cache: Path, engine: Engine) -> None:
        self.cache, self._engine = cache, engine

    def build(
        self,
        step: Step,
        tasks: Sequence[Any],
        run_shard: RunShard,
        finish: Finish = no_finish,
        rows: Sequence[int] | None = None,
        executor: str | None = None,
    ) -> Built:
        """The step, run now or taken from the cache; what is taken is hashed first: it will be trusted blindly.

        Args:
            step: the recipe.
            tasks: its shards.
            run_shard: what runs one.
            finish: what ends the step.
            rows: of each task, for progress in rows.
            executor: name of the one that runs it; None = that of the run.
        """
        is_reused = (self.cache / step.folder_name).exists()
        engine = self._engine._replace(progress=_in_rows(self._engine.progress, rows or [1] * len(tasks)))
        if executor is not None:
            engine = engine._replace(executor=executors.get(executor))
        folder = build(step, self.cache, tasks, run_shard, finish=finish, engine=engine)
        if is_reused:
            verify(folder)
        results = tuple(
            msgspec.json.decode((shard_folder(folder, number) / RESULT).read_bytes(), type=ShardResult)
            for number in range(len(tasks))
        )
        return Built(step, folder, results)


def _in_rows(progress: Progress | None, rows: Sequence[int]) -> Progress | None:
    """Progress that counts the rows of finished shards in place of the shards."""
    if progress is None:
        return None
    done_rows = [0, *accumulate(rows)]
    return lambda name, done, _: progress(name, done_rows[done], done_rows[-1])


def _check(builder: _Builder, plan: Plan, opened: OpenSource) -> Built:
    config, name = plan.config, opened.source.name
    step = check.step_of(opened, config)

    def finish(_: Path, results: Sequence[ShardResult]) -> dict[str, Json]:
        _check_source(plan, opened, results)
        return {}

    tasks = check.tasks_of(opened, config, step.fingerprint)
    built = builder.build(step, tasks, check.run_shard, finish, rows=[task.shard.rows for task in tasks])
    warning = check.check_health(name, _sums(built.results), config.of(opened.source).health, _show(opened))
    plan.warnings.extend([warning] if warning else [])
    plan.warnings.extend(alarms(name, _sums(built.results)))
    return built


def _check_source(plan: Plan, opened: OpenSource, results: Sequence[ShardResult]) -> None:
    counts, own = _sums(results), plan.config.of(opened.source)
    check.check_health(opened.source.name, counts, own.health, _show(opened))
    check.check_fatal([fault for result in results for fault in result.extra["fatal"]], own.read)


def _show(opened: OpenSource) -> str:
    return f"turnmill check {shlex.join(opened.source.data)}"


def _sums(results: Iterable[ShardResult]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for result in results:
        sums.update(result.counters)
    return dict(sums)


def _filter(builder: _Builder, config: Config, checked: Built) -> Built:
    options = filter.settled(config.filter)
    step = filter.step_of(checked.step, options, config.split.group_field)
    tasks = [
        filter.FilterTask(str(path), options, config.split.group_field, step.fingerprint)
        for path in checked.file(check.CONVERSATIONS)
    ]
    return builder.build(step, tasks, filter.run_shard)


def _tokenize(builder: _Builder, plan: Plan, name: str, checked: Built, sided: Built) -> Built:
    recipe = plan.recipes[name]
    step = Step("tokenize", tokenize.VERSION, recipe_params(plan.model, recipe), _inputs(checked, sided))
    sides = str(sided.file(split.SIDES)[0])
    columns = check.kept_columns(plan.config.read)
    tasks = [
        tokenize.TokenizeTask(str(path), groups, sides, recipe, columns, step.fingerprint, plan.config.accelerate)
        for path in checked.file(check.CONVERSATIONS)
        for groups in group_ranges(path, tokenize.TASK_ROWS)
    ]

    def finish(_: Path, results: Sequence[ShardResult]) -> dict[str, Json]:
        check_sayable(name, _sums(results), recipe.render, plan.model.name)
        return {}

    built = builder.build(step, tasks, tokenize.run_shard, finish, rows=[task.groups.rows for task in tasks])
    check_sayable(name, _sums(built.results), recipe.render, plan.model.name)
    return built


def _score(builder: _Builder, plan: Plan, name: str, tokenized: Built) -> Built:
    config = plan.config
    options = score.options_of(config)
    step = score.step_of(tokenized.step, options, score.scorer_of(options, config.model))
    tasks = [
        score.ScoreTask(
            {side: str(folder / f"{side}.arrow") for side in tokenize.SIDES},
            options,
            config.model,
            str(builder.cache / "scores"),
        )
        for folder in tokenized.file("")
    ]

    def finish(_: Path, results: Sequence[ShardResult]) -> dict[str, Json]:
        score.check_scored(name, results)
        return {}

    rows = [rows_of(Path(task.examples["train"])) or 0 for task in tasks]
    return builder.build(step, tasks, score.run_shard, finish, rows=rows, executor="inline")


def _select(builder: _Builder, plan: Plan, tokenized: dict[str, Built], scores: dict[str, Built]) -> Built:
    config = plan.config
    inputs = [built.step for built in (*tokenized.values(), *scores.values())]
    shards = [
        select.Shard(name, str(folder), str(scores[name].file("")[number]) if scores else None)
        for name, built in tokenized.items()
        for number, folder in enumerate(built.file(""))
    ]
    task = select.SelectTask(tuple(shards), config.select, config.seed)
    built = builder.build(select.step_of(inputs, config.select, config.seed), [task], select.run_shard)
    if not built.counters["select/kept"] and built.counters["select/pool"]:
        raise HealthError(select.nothing_left(built.results[0]), next_step="--select.max_perplexity 0")
    plan.warnings.extend(select.warnings_of(built.results[0], config.select))
    return built


def _selected(builder: _Builder, tokenized: dict[str, Built], selection: Built) -> dict[str, Built]:
    decisions = str(selection.file(SELECTION)[0])
    numbers = count()
    found = {}
    for name, built in tokenized.items():
        step = select_rows.step_of(built.step, selection.step)
        tasks = [
            select_rows.TakeTask(str(folder), next(numbers), decisions, result.extra["samples"], step.fingerprint)
            for folder, result in zip(built.file(""), built.results, strict=True)
        ]
        found[name] = builder.build(step, tasks, select_rows.run_shard)
    return found


def _inputs(*built: Built) -> tuple[str, ...]:
    return tuple(one.step.fingerprint for one in built)


def recipe_params(model: LoadedModel, recipe: Recipe) -> dict[str, Json]:
    """All that can change a byte of a source's examples: by content, not by path."""
    render: dict[str, Json] = msgspec.to_builtins(dataclasses.asdict(recipe.render))
    del render["on_unsayable"]
    if "strftime_now" not in model.template:
        del render["date"]
    return {
        "template": hashlib.sha256(model.template.encode("utf-8", "surrogatepass")).hexdigest(),
        "special_tokens": dict(sorted(model.special_tokens.items())),
        "eos": sorted(model.eos),
        "tokenizer": model.tokenizer_sha256,
        "added_tokens": [[token.content, token.special] for token in model.added_tokens],
        "render": render,
        "template_kwargs": recipe.template_kwargs,
        "control_tokens": recipe.control_tokens,
        "loss": msgspec.to_builtins(dataclasses.asdict(recipe.loss)),
        "fit": {"overflow": recipe.fit.overflow, "max_tokens": recipe.max_tokens},
    }


def check_sayable(source: str, counts: dict[str, int], render: Render, model: str) -> None:
    """Stop where the template cannot say too large a share of a source.

    Raises:
        HealthError: over 5 % of at least 20 rows, unless `render.on_unsayable` is `drop`.
    """
    lost = counts.get("rows/rejected-at-render", 0)
    rows = counts.get("rows/accepted", 0) + counts.get("rows/eval", 0) + counts.get("rows/rejected", 0)
    if render.on_unsayable == "drop" or rows < MIN_UNSAYABLE_ROWS or lost <= MAX_UNSAYABLE * rows:
        return
    if 2 * counts.get(f"codes/{TEXT_HOLDS_CONTROL_TOKENS}", 0) > lost:
        raise HealthError(
            f"source {source!r}: {lost:,} of {rows:,} rows cannot be trained on ({lost / rows:.1%}):\n"
            f"{_codes_listing(counts)}\n"
            "the source's `control_tokens` says what becomes of such texts: escape, or keep where they were rendered",
            next_step=f"--sources.{source}.control_tokens escape",
        )
    raise HealthError(
        f"source {source!r}: the template cannot say {lost:,} of {rows:,} rows ({lost / rows:.1%}):\n"
        f"{_codes_listing(counts)}\n"
        "look at them with `turnmill explain`, choose another template, or let them go: --render.on_unsayable drop",
        next_step=f"turnmill template check {shell_word(model)}",
    )


def _codes_listing(counts: Mapping[str, int]) -> str:
    """Each code with its count, a line each, the most frequent first."""
    codes = {name.removeprefix("codes/"): count for name, count in counts.items() if name.startswith("codes/")}
    return "\n".join(f"  {count:>9,}  {code}" for code, count in sorted(codes.items(), key=lambda item: -item[1]))


def _pack(builder: _Builder, plan: Plan, examples: dict[str, Built], selection: Built | None) -> Built:
    config = plan.config
    is_ordered = selection is not None and config.select.strategy == ORDERED
    weights = tuple((source.name, source.weight) for source in config.sources)
    steps = [built.step for built in examples.values()]
    step = pack.step_of(steps, config.pack, plan.max_tokens, config.seed, mix=config.mix, weights=weights)
    tasks = [
        pack.PackTask(
            side=side,
            examples=tuple(str(path) for built in examples.values() for path in built.file(f"{side}.arrow")),
            max_tokens=plan.max_tokens,
            pack=config.pack,
            seed=config.seed,
            order=str(selection.file(SELECTION)[0]) if selection and is_ordered and side == "train" else None,
            mix=config.mix,
            weights=weights,
        )
        for side in sides_of(selection)
    ]
    built = builder.build(step, tasks, pack.run_shard)
    plan.warnings.extend(mix.warnings_of([stored(share) for share in built.results[0].extra["mix"] or ()]))
    if not len(built.results) or not built.counters["train/packs"]:
        counts = _sums(result for one in examples.values() for result in one.results)
        why = _codes_listing(counts) or "  every row was held out, filtered or a duplicate"
        raise HealthError(f"no row became a training example:\n{why}", next_step=_census_of(config))
    return built


def _census_of(config: Config) -> str:
    data = [path for source in config.sources for path in source.data]
    return f"turnmill census {shlex.join(data)} --model {shell_word(config.model.name_or_path)}"
