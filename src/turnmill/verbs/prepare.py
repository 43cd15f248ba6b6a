"""prepare: the line in order, from raw files to packed, masked training data with a full account of it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from turnmill.conversation import Json
from turnmill.dialects.sessions import TRACE_COLUMNS
from turnmill.errors import HealthError, UsageError, shell_word
from turnmill.executors import executors
from turnmill.executors.local import workers_kept
from turnmill.files.disk import beside
from turnmill.files.selection import SELECTION
from turnmill.files.stores import is_url
from turnmill.files.tables import group_ranges
from turnmill.mix import require_filled, stored
from turnmill.models import LoadedModel, open_model
from turnmill.options import KEEP_ALL, Render
from turnmill.repairs.mender import alarms
from turnmill.selection import ORDERED
from turnmill.steps.build import Engine, Progress
from turnmill.steps.shards import ShardResult, sums
from turnmill.steps.step import Step
from turnmill.steps.store import Place, place_of
from turnmill.verbs import (
    check,
    decontaminate,
    dedup,
    filter,
    mix,
    near,
    pack,
    score,
    select,
    select_rows,
    split,
    tokenize,
)  # fmt: skip
from turnmill.verbs.built import Builder, Built
from turnmill.verbs.held_out import SplitTask
from turnmill.verbs.near import NearFiles
from turnmill.verbs.read import OpenSource, open_sources, with_columns_named
from turnmill.verbs.tokenize import Recipe

if TYPE_CHECKING:
    from turnmill.config import Config

MAX_UNSAYABLE = 0.05
"""Share of a source's rows that the template may fail to say before a run stops."""
MIN_UNSAYABLE_ROWS = 20
TEXT_HOLDS_CONTROL_TOKENS = "text-holds-control-tokens"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do: nothing is written yet."""

    config: Config
    sources: list[OpenSource]
    model: LoadedModel
    max_tokens: int
    recipes: dict[str, Recipe]
    """By source."""
    evaluation: decontaminate.Evaluation | None = None
    """What rows are compared with."""
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A finished run before it is published."""

    checks: dict[str, Built]
    filters: dict[str, Built]
    dedup: Built
    decontaminated: dict[str, Built]
    """By source; none where there is nothing to compare with."""
    split: Built
    tokenized: dict[str, Built]
    examples: dict[str, Built]
    """What trains, by source: the tokenized rows, or those of them that were selected."""
    pack: Built
    scores: dict[str, Built] = field(default_factory=dict)
    """By source; empty where nothing is scored."""
    selection: Built | None = None
    """None where every row stays."""
    remade: dict[str, list[str]] = field(default_factory=dict)
    """Step that was not there, though one of its name was → what its recipe has otherwise."""

    @property
    def sides(self) -> tuple[str, ...]:
        """Whose examples there may be, in the order of the packs."""
        return sides_of(self.selection)

    @property
    def steps(self) -> list[Built]:
        """Every step, in the order of the line."""
        chosen = [] if self.selection is None else [self.selection, *self.examples.values()]
        return [
            *self.checks.values(),
            *self.filters.values(),
            self.dedup,
            *self.decontaminated.values(),
            self.split,
            *self.tokenized.values(),
            *self.scores.values(),
            *chosen,
            self.pack,
        ]


def sides_of(selection: Built | None) -> tuple[str, ...]:
    """The sides that a run packs: a control only where a selection drew one."""
    has_control = selection is not None and selection.counters["select/control"]
    return (*tokenize.SIDES, select_rows.CONTROL) if has_control else tokenize.SIDES


def plan_of(config: Config, *, is_hashed: bool = True) -> Plan:
    """Open the sources and the model, and prove that the template can be used.

    Args:
        config: of the run.
        is_hashed: False where the plan is only looked at.

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
            split.require_usable(own.split, (*check.kept_columns(config.read), *TRACE_COLUMNS))
    model = open_model(config.model)
    max_tokens = tokenize.max_tokens_of(config.fit, model)
    recipes = {source.name: tokenize.recipe_of(config, source, max_tokens) for source in config.sources}
    for recipe in recipes.values():
        tokenize.line_of(recipe)
    evaluation = decontaminate.open_evaluation(config.decontaminate, config.read)
    opened = open_sources(config, is_hashed=is_hashed)
    config = with_columns_named(config, opened)
    for source in config.sources:
        split.require_usable(config.of(source).split, check.kept_columns(config.read))
    select.require_usable(config, check.kept_columns(config.read))
    if score.is_on(config):
        score.scorer_of(score.options_of(config), config.model)
    return Plan(config, opened, model, max_tokens, recipes, evaluation)


def cache_of(output: Path, cache: str | Path | None) -> Place:
    """Where step folders lie: `--cache`, a folder or the URL of a store, or a hidden sibling of OUT.

    Raises:
        UsageError: it lies inside OUT, which is replaced whole.
    """
    place = Path(os.path.realpath(output))
    found = place_of(None if cache is None else str(cache), beside(place, "steps"))
    if Path(os.path.realpath(found.folder)).is_relative_to(place):
        what = f"the cache {cache} lies inside the output {output}, which is replaced whole; expected another place"
        raise UsageError(what, next_step=f"--cache {shell_word(beside(place, 'steps'))}")
    return found


def refuse_inputs_inside(plan: Plan, output: Path) -> None:
    """Refuse to replace a folder that the run reads from.

    Raises:
        UsageError: a file of a source, or of evaluation data, lies inside OUT, which is replaced whole.
    """
    place = Path(os.path.realpath(output))
    read = [opened.plan for opened in plan.sources] + ([plan.evaluation.plan] if plan.evaluation else [])
    for path in (file.path for one in read for file in one.files if not is_url(file.path)):
        if Path(os.path.realpath(path)).is_relative_to(place):
            what = f"{path} lies inside the output {output}, which is replaced whole; expected another place"
            raise UsageError(what, next_step=f"--output {shell_word(f'{place}-again')}")


def run(plan: Plan, cache: Place, progress: Progress | None = None, partitions: int = 0) -> Prepared:
    """Build every step that is not there already.

    Args:
        plan: what to do.
        cache: where steps lie.
        progress: told of finished rows.
        partitions: how many ranges of keys dedup and split look at on their own; 0: as many as the rows need. No byte
            of the result hangs on it.

    Raises:
        HealthError: a source lost too many rows, or the template cannot say too many; nothing is published.
    """
    config = plan.config
    engine = Engine(
        executors.get(config.executor), config.workers or os.cpu_count() or 1, progress, cache.store, partitions
    )
    with workers_kept():
        return _built(Builder(cache.folder, engine), plan)


def _built(builder: Builder, plan: Plan) -> Prepared:
    config = plan.config
    evaluation = _evaluation(builder, plan)
    checks = {opened.source.name: _check(builder, plan, opened) for opened in plan.sources}
    filters = {
        opened.source.name: _filter(builder, config.of(opened.source), checks[opened.source.name])
        for opened in plan.sources
    }
    names = tuple(checks)
    conversations = tuple(str(path) for checked in checks.values() for path in checked.file(check.CONVERSATIONS))
    indexes = tuple(str(path) for filtered in filters.values() for path in filtered.file(filter.INDEX))
    steps = [filtered.step for filtered in filters.values()]
    found = (
        near.build_pairs(builder, steps, conversations, indexes, config.dedup.near) if near.is_wanted(config) else None
    )
    compared = found if "near" in config.dedup.by else None
    step = dedup.step_of(steps, config.dedup, compared)
    task = dedup.DedupTask(indexes, conversations, names, config.dedup, step.fingerprint, compared)
    deduped = dedup.build(builder, step, task)
    rows = {name: sums(checked.results)["rows/checked"] for name, checked in checks.items()}
    plan.warnings.extend(dedup.warnings(deduped.results[0], rows))
    clean: dict[str, Built] = {}
    if evaluation is not None:
        build = partial(decontaminate.build_source, builder, deduped=deduped, evaluation=evaluation)
        clean = {name: build(checked, filters[name]) for name, checked in checks.items()}
    sided = _split(builder, plan, indexes, deduped, clean, found)
    tokenized = {name: _tokenize(builder, plan, name, checked, sided) for name, checked in checks.items()}
    scored = tokenized if score.is_on(config) else {}
    scores = {name: score.build_source(builder, config, name, built) for name, built in scored.items()}
    selection = select.build(builder, config, tokenized, scores) if select.is_on(config) else None
    if selection is not None:
        plan.warnings.extend(select.warnings_of(selection.results[0], config.select))
    examples = tokenized if selection is None else select_rows.build_sources(builder, tokenized, selection)
    packed = _pack(builder, plan, examples, selection)
    return Prepared(
        checks, filters, deduped, clean, sided, tokenized, examples, packed, scores, selection, builder.remade
    )


def _check(builder: Builder, plan: Plan, opened: OpenSource) -> Built:
    config, name = plan.config, opened.source.name
    step = check.step_of(opened, config)

    def finish(_: Path, results: Sequence[ShardResult]) -> dict[str, Json]:
        check.check_source(opened, config, results)
        return {}

    tasks = check.tasks_of(opened, config, step.fingerprint)
    built = builder.build(step, tasks, check.run_shard, finish, rows=[task.shard.rows for task in tasks])
    warning = check.check_health(name, sums(built.results), config.of(opened.source).health, check.show_command(opened))
    plan.warnings.extend([warning] if warning else [])
    plan.warnings.extend(alarms(name, sums(built.results)))
    return built


def _filter(builder: Builder, config: Config, checked: Built) -> Built:
    options = filter.settled(config.filter)
    step = filter.step_of(checked.step, options, config.split.group_field)
    tasks = [
        filter.FilterTask(str(path), options, config.split.group_field, step.fingerprint)
        for path in checked.file(check.CONVERSATIONS)
    ]
    return builder.build(step, tasks, filter.run_shard)


def _evaluation(builder: Builder, plan: Plan) -> Built | None:
    if plan.evaluation is None:
        return None
    config = plan.config
    built = decontaminate.build_evaluation(builder, plan.evaluation, config.decontaminate, config.read)
    plan.warnings.extend(decontaminate.warnings(built.results[0]))
    return built


def _split(
    builder: Builder,
    plan: Plan,
    indexes: tuple[str, ...],
    deduped: Built,
    clean: Mapping[str, Built],
    found: NearFiles | None,
) -> Built:
    config, own = plan.config, split.own_splits(plan.config)
    found = found if config.split.near else None
    step = split.step_of([deduped.step, *(one.step for one in clean.values())], config.split, own, found)
    left = tuple(str(path) for one in clean.values() for path in one.file(check.QUARANTINE))
    names = tuple(opened.source.name for opened in plan.sources)
    task = SplitTask(indexes, str(deduped.file(dedup.DUPLICATES)[0]), names, config.split, own, near=found, left=left)
    built = split.build(builder, step, task)
    plan.warnings.extend(split.warnings(built.results[0], config.split))
    return built


def _tokenize(builder: Builder, plan: Plan, name: str, checked: Built, sided: Built) -> Built:
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
        check_sayable(name, sums(results), recipe.render, plan.model.name)
        return {}

    built = builder.build(step, tasks, tokenize.run_shard, finish, rows=[task.groups.rows for task in tasks])
    check_sayable(name, sums(built.results), recipe.render, plan.model.name)
    return built


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


def _pack(builder: Builder, plan: Plan, examples: dict[str, Built], selection: Built | None) -> Built:
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
    mixed = [stored(share) for share in built.results[0].extra["mix"] or ()]
    require_filled(mixed, dict(weights))
    plan.warnings.extend(mix.warnings_of(mixed))
    if not len(built.results) or not built.counters["train/packs"]:
        counts = sums(result for one in examples.values() for result in one.results)
        why = _codes_listing(counts) or "  every row was held out, filtered, contaminated or a duplicate"
        raise HealthError(f"no row became a training example:\n{why}", next_step=_census_of(config))
    return built


def _census_of(config: Config) -> str:
    data = [path for source in config.sources for path in source.data]
    return f"turnmill census {shlex.join(data)} --model {shell_word(config.model.name_or_path)}"
