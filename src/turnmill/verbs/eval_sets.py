"""What is evaluated on: held-out rows of a prepared folder, raw rows by the same recipe, and the battery."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from turnmill.config_sources import merged
from turnmill.conversation import Json
from turnmill.errors import HealthError, StaleError, UsageError, quote, shell_word
from turnmill.evaluation.sets import EvalSet, MadeItems, prepared_sets
from turnmill.files.prepared import PreparedData
from turnmill.models import LoadedModel, open_model
from turnmill.options import EvalSource, Evaluate, Fit, Model, Source
from turnmill.rendered import Loss
from turnmill.verbs import tokenize
from turnmill.verbs.battery import battery_sources
from turnmill.verbs.census import is_prepared
from turnmill.verbs.compare import Named, named
from turnmill.verbs.eval_rows import Draw, made_rows
from turnmill.verbs.recipes import stored_recipes
from turnmill.verbs.tokenize import Recipe

if TYPE_CHECKING:
    from turnmill.config import Config, Origins


class Typed(NamedTuple):
    """Data on the command line."""

    data: tuple[str, ...] = ()
    """`PATH`, `NAME=PATH`, `OUT` or `OUT#SIDE`."""
    dialect: str | None = None
    """Of the raw ones; None: it is detected."""
    repairs: str | None = None
    """Names with commas between, for the raw ones."""


UNTYPED = Typed()


class Wanted(NamedTuple):
    """A set that was asked for."""

    source: EvalSource
    importance: float | None
    """Share in the composite; None: it counts by its tokens."""
    is_pooled: bool = True
    """All its rows are one set; else each source of a prepared folder is one."""
    follows_data: bool = True
    """Masked and cut as the training data were; else by the defaults, so that all models can be compared."""


class Asked(NamedTuple):
    """What sets are made with."""

    config: Config
    origins: Origins
    model: Model
    """Whose tokenizer and template rows are made for."""
    loaded: LoadedModel
    """The same, opened; where its template is another, that of `like` is looked for when raw rows need it."""
    like: PreparedData | None = None
    """The prepared folder whose recipe raw rows follow; None: the config's."""


class EvalSets(NamedTuple):
    """The sets, and what is said of them."""

    sets: list[EvalSet]
    missing: dict[str, str]
    """Optional ones that could not be made → why."""
    about: dict[str, dict[str, Json]]
    """Set → its data and recipe."""
    warnings: list[str]


def eval_sets(asked: Asked, typed: Typed = UNTYPED) -> EvalSets:
    """The sets that the `evaluate` section names, or those of the data that were typed.

    Args:
        asked: config, model and recipe.
        typed: in place of those that the config names.

    Raises:
        UsageError: there are none, two of one name, or one that is named cannot be read.
        HealthError: one that is named gives too few examples.
        StaleError: a prepared folder was made with another tokenizer or template.
    """
    if asked.like is not None:
        check_made_for(asked.like, asked.loaded)
    found = EvalSets([], {}, {}, [])
    wanted = named_sets(asked.config.evaluate, typed)
    if not wanted and asked.like is not None:
        wanted = [Wanted(EvalSource("eval", (f"{asked.like.folder}#eval",)), None, is_pooled=False)]
    battery = battery_sources() if asked.config.evaluate.battery else ()
    wanted += [Wanted(source, 0.0 if wanted else 1.0, follows_data=False) for source in battery]
    if not wanted:
        raise UsageError("there is nothing to evaluate on", next_step="--data OUT, or --battery")
    _check(wanted)
    for one in wanted:
        _add(one, asked, found)
    return found


def asked_in_training(config: Config, origins: Origins, prepared: PreparedData, directory: str) -> Asked:
    """What sets are made with while a model learns from a prepared folder: rows are made as that was.

    Args:
        config: of the run.
        origins: of its values.
        prepared: what is trained on.
        directory: of the model.

    Raises:
        StaleError: the template that the folder was prepared with is not found any more.
    """
    stored = next(iter(stored_recipes(prepared.folder, config, {}).values())).model
    names = (directory, stored.name_or_path)
    for options in (dataclasses.replace(stored, name_or_path=name) for name in names):
        with suppress(UsageError):
            loaded = open_model(options)
            if loaded.template == prepared.manifest["template"]["text"]:
                return Asked(config, origins, options, loaded, prepared)
    raise StaleError(
        f"{prepared.folder} was prepared with a template ({prepared.manifest['template']['origin']}) that is not found "
        "any more, and rows to evaluate on need it",
        next_step=f"turnmill prepare DATA --output {shell_word(prepared.folder)}",
    )


def check_made_for(prepared: PreparedData, loaded: LoadedModel) -> None:
    """Refuse a folder whose tokens the model would misread.

    Raises:
        StaleError: another tokenizer, or another template.
    """
    manifest, folder = prepared.manifest, prepared.folder
    if manifest["model"]["tokenizer_sha256"] != loaded.tokenizer_sha256:
        raise StaleError(
            f"{folder} was prepared with the tokenizer of {manifest['model']['name']}, which is not that of "
            f"{loaded.name}: its tokens would be read as others",
            next_step=f"turnmill prepare DATA --model {shell_word(loaded.name)} --output OUT",
        )
    if manifest["template"]["text"] != loaded.template:
        raise StaleError(
            f"{folder} was prepared with another template ({manifest['template']['origin']}) than that of "
            f"{loaded.name} ({loaded.template_origin})",
            next_step="--template NAME, the one that the folder was prepared with",
        )


def named_sets(options: Evaluate, typed: Typed = UNTYPED) -> list[Wanted]:
    """The sets that are named: by the data that were typed, else by the `evaluate` section."""
    if options.eval_sources and not typed.data:
        return [Wanted(source, source.weight) for source in options.eval_sources]
    if options.eval_dataset and not typed.data:
        typed = typed._replace(data=(options.eval_dataset,))
    return _typed_sets(typed)


def _typed_sets(typed: Typed) -> list[Wanted]:
    """A set for each input that was typed; a prepared folder without a name is a set a source."""
    from turnmill.config import sources_of

    found = []
    for written, source in zip(typed.data, sources_of(typed.data, typed.dialect, typed.repairs), strict=True):
        path, name = source["data"][0], source["name"].partition("#")[0]
        is_pooled = path != written or side_of(path) is None
        manner = {"dialect": source.get("dialect", "auto"), "repairs": tuple(source.get("repairs", ()))}
        found.append(Wanted(EvalSource(name, (path,), **manner), None, is_pooled=is_pooled))
    return found


def _check(wanted: Sequence[Wanted]) -> None:
    for source, importance in ((one.source, one.importance) for one in wanted):
        if importance is not None and not 0 <= importance < float("inf"):
            what = f"evaluation source {source.name!r}: got the weight {importance}, expected at least 0"
            raise UsageError(what, next_step="turnmill config schema")
        if not source.name or not source.data:
            what = f"evaluation source {quote(source.name)}: expected a name, and data"
            raise UsageError(what, next_step="turnmill config schema")
        if source.samples is not None and source.samples < 1:
            what = f"evaluation source {source.name!r}: got {source.samples} samples, expected at least 1"
            raise UsageError(what, next_step="turnmill config schema")
        if source.mode == "text" and source.dialect not in ("text", "auto"):
            what = f"evaluation source {source.name!r}: got mode text beside the dialect {source.dialect!r}"
            raise UsageError(f"{what}, expected text or auto", next_step="turnmill config schema")


def _add(one: Wanted, asked: Asked, found: EvalSets) -> None:
    """Make one of the sets; an optional one that fails is missing."""
    try:
        folder = _prepared_folder(one.source)
        made = _raw(one, asked, found) if folder is None else _stored(one, folder, asked, found)
    except (UsageError, HealthError) as problem:
        if not one.source.optional:
            raise
        found.missing[one.source.name] = problem.message.splitlines()[0].rstrip(":")
        return
    for each in made:
        if any(each.name == other.name for other in found.sets):
            what = f"two evaluation sets are called {each.name!r}"
            raise UsageError(what, next_step=f"--data {shell_word(f'NAME={one.source.data[0]}')}")
        found.sets.append(each)


def side_of(path: str) -> Named | None:
    """The side of a prepared folder that a path names, the held-out rows where it names none; None for raw data.

    Raises:
        UsageError: no such side.
    """
    folder, mark, _ = path.rpartition("#")
    if is_prepared(Path(path)):
        return Named(Path(path), "eval")
    return named(path) if mark and is_prepared(Path(folder)) else None


def _prepared_folder(source: EvalSource) -> Named | None:
    which = side_of(source.data[0])
    if which is None:
        return None
    if len(source.data) > 1:
        what = f"evaluation source {source.name!r}: got {len(source.data)} inputs, expected a prepared folder alone"
        raise UsageError(what, next_step="turnmill config schema")
    return which


def _stored(one: Wanted, which: Named, asked: Asked, found: EvalSets) -> list[EvalSet]:
    """The examples of a prepared folder as they are stored."""
    prepared = PreparedData(which.folder)
    check_made_for(prepared, asked.loaded)
    draw = _draw(one.source, asked.config)
    name = one.source.name if one.is_pooled else None
    sets = prepared_sets(prepared, which.side, name, samples=draw.samples, seed=draw.seed)
    if not sets:
        raise UsageError(
            f"{which.folder} holds no rows of {which.side!r}",
            next_step=f"turnmill prepare DATA --split.fraction 0.05 --output {shell_word(which.folder)}",
        )
    for each in sets:
        found.about[each.name] = {
            "prepared": prepared.manifest["fingerprint"], "side": which.side, "samples": draw.samples,
        }  # fmt: skip
    return [_marked(each, one, asked.config) for each in sets]


def _raw(one: Wanted, asked: Asked, found: EvalSets) -> list[EvalSet]:
    """The examples of raw rows."""
    if asked.like is not None and open_model(asked.model).template != asked.loaded.template:
        asked = asked_in_training(asked.config, asked.origins, asked.like, str(asked.model.name_or_path))
    source, draw = _source(one.source), _draw(one.source, asked.config)
    recipe = recipe_for(one.source, asked if one.follows_data else _plain(asked))
    made = made_rows(source, asked.config, recipe, draw)
    if made.warning is not None:
        found.warnings.append(made.warning)
    stored: Json = msgspec.to_builtins(dataclasses.asdict(dataclasses.replace(recipe, model=Model())))
    found.about[source.name] = {**made.about, "samples": draw.samples, "recipe": stored}
    return [_marked(EvalSet(source.name, MadeItems(made.examples)), one, asked.config)]


def _source(source: EvalSource) -> Source:
    """An evaluation source as the row pipeline reads it."""
    is_text = source.mode == "text"
    return Source(
        name=source.name,
        data=source.data,
        dialect="text" if is_text else source.dialect,
        mode="text" if is_text else "chat",
        columns=source.columns,
        repairs=source.repairs,
        template_kwargs=source.template_kwargs,
        loss=source.loss,
    )


def _plain(asked: Asked) -> Asked:
    """By the defaults, whatever the training data were."""
    return asked._replace(config=asked.config.model_copy(update={"loss": Loss(), "fit": Fit()}), like=None)


def recipe_for(source: EvalSource, asked: Asked) -> Recipe:
    """How a raw row becomes examples: as those of the training data do.

    Raises:
        UsageError: a wrong option, or the training data were made in several ways.
    """
    try:
        loss = asked.config.of(_source(source)).loss
    except UsageError as error:
        raise UsageError(f"evaluation source {source.name!r}: {error.message}", next_step=error.next_step) from None
    if asked.like is None:
        own = tokenize.recipe_of(asked.config, _source(source))
        recipe = dataclasses.replace(own, loss=loss)
    else:
        recipe = _like(source, stored_recipes(asked.like.folder, asked.config, asked.origins))
        changed = merged(dataclasses.asdict(recipe.loss), source.loss)
        kwargs = {**recipe.template_kwargs, **source.template_kwargs}
        recipe = dataclasses.replace(recipe, loss=msgspec.convert(changed, Loss), template_kwargs=kwargs)
    most = recipe.max_tokens or tokenize.max_tokens_of(recipe.fit, asked.loaded)
    return dataclasses.replace(recipe, model=asked.model, max_tokens=most)


def _like(source: EvalSource, recipes: dict[str, Recipe]) -> Recipe:
    """The recipe of the source of that name, else the one that all sources share."""
    name = source.name
    if name in recipes:
        return recipes[name]
    shared = [dataclasses.replace(recipe, template_kwargs={}, control_tokens=None) for recipe in recipes.values()]
    if source.mode == "text":  # which has no turns to mask, and is cut in its own way
        shared = [dataclasses.replace(recipe, loss=Loss(), fit=Fit()) for recipe in shared]
    if any(recipe != shared[0] for recipe in shared):
        what = f"the training data were made in several ways, and none of their sources is called {name!r}"
        raise UsageError(f"{what}: {', '.join(recipes)}", next_step=f"--data {shell_word(f'{min(recipes)}=PATH')}")
    return shared[0]


def _draw(source: EvalSource, config: Config) -> Draw:
    return Draw(source.samples or config.evaluate.samples, config.seed)


def _marked(made: EvalSet, one: Wanted, config: Config) -> EvalSet:
    own = one.source.regression_floor
    floor = config.evaluate.regression_floor if own is None else own
    return dataclasses.replace(made, importance=one.importance, regression_floor=floor)
