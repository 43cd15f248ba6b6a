"""The Python side of the verbs: the same words, options and errors as on the command line.

Every function takes `options`, a mapping of dotted fields to values as the config has them (`{"loss.turns": "last"}`),
and `config`, a YAML file that they go over.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from turnmill.errors import UsageError

if TYPE_CHECKING:
    from turnmill.config import Config, Origins
    from turnmill.conversation import Checked, Conversation
    from turnmill.files.prepared import PreparedData, Side
    from turnmill.files.quarantine import Left
    from turnmill.rendered import Rendered
    from turnmill.rendering.renderer import Renderer
    from turnmill.report.explanation import Explanation
    from turnmill.sources import PinnedSource
    from turnmill.steps.graph import Node, Outcome
    from turnmill.steps.manifest import Artifact
    from turnmill.steps.store import Place
    from turnmill.stream.row_stream import RowStream
    from turnmill.verbs.evaluate import Evaluated
    from turnmill.verbs.rows import ReadRow
    from turnmill.verbs.source_steps import SourceNodes

Data = str | Path | Sequence[str | Path]
"""One input or several: paths, directories, globs; `NAME=PATH` names its source."""
Options = Mapping[str, Any]
Result = TypeVar("Result")


def read(
    data: Data = (), *, dialect: str | None = None, config: str | Path | None = None, options: Options | None = None
) -> Iterator[ReadRow]:
    """Every row of the data, checked and filtered, or with the fault it leaves with; never holds more than a batch.

    Args:
        data: what to read; nothing = the sources of `config`.
        dialect: of `data`; default: told by the keys.
        config: a YAML file.
        options: over it.

    Raises:
        UsageError: nothing to read, a file that cannot be read, or an unknown field.
    """
    from turnmill.verbs.read import open_sources
    from turnmill.verbs.rows import rows_of

    loaded, _ = _configured(data, dialect, config, options)
    if not loaded.sources:
        raise UsageError("no data given: expected files, or `sources` in a config")
    for opened in open_sources(loaded):
        yield from rows_of(opened, loaded, Counter())


def check(conversation: Conversation, options: Options | None = None) -> Checked:
    """A conversation that was made in Python, once it has met the chat contract.

    Args:
        conversation: the row.
        options: fields of the `check` section (`{"unanswered_calls": "reject"}`).

    Raises:
        Rejected: the first rule that was broken.
    """
    from turnmill.contract import check as check_contract

    section = {f"check.{name}": value for name, value in (options or {}).items()}
    return check_contract(conversation, _configured((), None, None, section)[0].check)


def render(
    conversation: Checked,
    *,
    model: str | None = None,
    template: str | None = None,
    options: Options | None = None,
) -> Rendered:
    """The text of a conversation, and who wrote each character of it.

    Args:
        conversation: the row.
        model: a model directory, or `smollm2`.
        template: a Jinja file or a template's name, in place of the model's.
        options: any fields.

    Raises:
        Rejected: the template cannot say the row.
        UsageError: no such model, or a template that cannot be used.
    """
    return _renderer(model, template, json.dumps(dict(options or {}), sort_keys=True)).render(conversation)


def explain(
    data: Data,
    row: int | str,
    *,
    model: str | None = None,
    template: str | None = None,
    dialect: str | None = None,
    config: str | Path | None = None,
    options: Options | None = None,
) -> Explanation:
    """One row with its text, spans, tokens and labels, and why each of its turns trains or does not.

    Args:
        data: raw data, or one prepared folder.
        row: its number, or its id.
        model: a model directory, or `smollm2`.
        template: in place of the model's; alone, there are no tokens.
        dialect: of `data`.
        config: a YAML file.
        options: over it.

    Raises:
        UsageError: no such row, or nothing to render it with.
    """
    from turnmill.verbs.explain import Selection
    from turnmill.verbs.explain import explain as explanations

    loaded, origins = _configured(data, dialect, config, {**_model(model, template), **(options or {})})
    return next(iter(explanations(loaded, origins, Selection(str(row)))))


def prepare(  # noqa: PLR0913  # one keyword for each thing the command line has an option for
    data: Data = (),
    *,
    output: str | Path,
    model: str | None = None,
    template: str | None = None,
    dialect: str | None = None,
    config: str | Path | None = None,
    options: Options | None = None,
    cache: str | Path | None = None,
) -> PreparedData:
    """Make packed, masked training data, publish it whole, and open it.

    Workers are spawned: call it under `if __name__ == "__main__"`, or with `{"workers": 1}`.

    Args:
        data: what to read; nothing = the sources of `config`.
        output: the folder to publish; replaced whole.
        model: a model directory, or `smollm2`.
        template: in place of the model's.
        dialect: of `data`.
        config: a YAML file.
        options: over it.
        cache: where finished steps are kept, a folder or a store's URL; default beside the output.

    Raises:
        UsageError: something given is wrong; nothing was written.
        HealthError: a source lost too many rows; nothing was published.
    """
    from turnmill.files.publish import claim
    from turnmill.verbs.prepare import cache_of, plan_of, refuse_inputs_inside, run
    from turnmill.verbs.prepared import publish_prepared

    started = time.time()
    loaded, _ = _configured(data, dialect, config, {**_model(model, template), **(options or {})})
    plan, target = plan_of(loaded), Path(output)
    refuse_inputs_inside(plan, target)
    with claim(target):
        prepared = run(plan, cache_of(target, cache))
        publish_prepared(plan, prepared, target, started)
    return open_prepared(target, whole=False)


def train(  # one keyword for each thing the command line has an option for
    data: str | Path | None = None,
    *,
    output: str | Path,
    model: str | Path | None = None,
    config: str | Path | None = None,
    options: Options | None = None,
    replace: bool = False,
    resume: bool = False,
) -> dict[str, Any]:
    """Train a model on a prepared folder, publish it whole, and give its summary.

    Args:
        data: OUT; default `train.data` of the config, which is then compared with the config's sources, too.
        output: the folder to publish.
        model: directory of the model that is trained; default the one that the data were prepared for.
        config: a YAML file.
        options: over it (`{"train.method": "lora"}`).
        replace: whether a trained model that is there may be replaced.
        resume: go on from the last checkpoint.

    Raises:
        UsageError: something given is wrong; nothing was written.
        StaleError: the data are not prepared, or changed; or the checkpoint is of another run.
        TurnmillError: somebody stopped the run, and it is saved.
    """
    from turnmill.verbs.train import Place, Telling, plan_of, run
    from turnmill.verbs.trained import publish_trained

    given = {} if model is None else {"train.model": str(model)}
    loaded, origins = _configured((), None, config, {**given, **(options or {})})
    folder = data or loaded.train.data
    if folder is None:
        raise UsageError("no data given: expected a prepared folder, or `train.data` in the config")
    if data is not None:
        loaded = loaded.model_copy(update={"sources": ()})
    place = Place(Path(folder), Path(output), replace=replace, resume=resume)
    trained = run(plan_of(loaded, origins, place, f"turnmill prepare DATA --output {folder}"), Telling())
    return dict(publish_trained(trained)) if trained.plan.ranks.rank == 0 else {}


def open_prepared(folder: str | Path, *, whole: bool = True) -> PreparedData:
    """A folder that `prepare` published, once its files are what its manifest lists.

    Args:
        folder: OUT.
        whole: compare hashes; False compares sizes alone.

    Raises:
        UsageError: it is no prepared folder.
        StaleError: a file is missing or changed.
    """
    from turnmill.files.prepared import PreparedData

    return PreparedData(folder, whole=whole)


def open_rows(  # noqa: PLR0913  # one keyword for each thing that may differ
    data: Data = (),
    batch_size: int = 8,
    *,
    model: str | None = None,
    template: str | None = None,
    dialect: str | None = None,
    config: str | Path | None = None,
    options: Options | None = None,
    side: Side = "train",
    rank: int = 0,
    ranks: int = 1,
    on_left: Callable[[Left], None] | None = None,
) -> RowStream:
    """A stream of rows that become examples as they are asked for, by the row pipeline of `prepare`.

    Args:
        data: canonical rows (a prepared folder, or its conversations) or anything else that is read; nothing = the
            sources of `config`.
        batch_size: rows of a batch, of one rank.
        model: a model directory, or `smollm2`; default for a prepared folder: its own recipe.
        template: in place of the model's.
        dialect: of `data`.
        config: a YAML file.
        options: over it, or over a prepared folder's own recipe; `pack.order` and `seed` are those of the stream.
        side: of a prepared folder, whose rows.
        rank: of this process.
        ranks: how many there are.
        on_left: is given every row of this rank that gives no example, with its code.

    Raises:
        UsageError: nothing to read, no model, or a file that rows cannot be picked from.
    """
    from turnmill.stream.row_order import Cut
    from turnmill.verbs.live_rows import open_rows as opened

    loaded, origins = _configured(data, dialect, config, {**_model(model, template), **(options or {})})
    return opened(loaded, origins, Cut(batch_size, rank, ranks), side, on_left)


def evaluate(  # noqa: PLR0913  # one keyword for each thing the command line has an option for
    model: str | Path,
    data: Data = (),
    *,
    output: str | Path | None = None,
    like: str | Path | None = None,
    base: str | None = None,
    baseline: str | Path | None = None,
    dialect: str | None = None,
    config: str | Path | None = None,
    options: Options | None = None,
) -> Evaluated:
    """What held-out rows cost a model: `.evaluation`, its losses by set and kind, and `.alarms`.

    Args:
        model: a model directory, adapters, or `smollm2`.
        data: held-out rows, raw or prepared (`OUT`, `OUT#train`, `NAME=PATH`); nothing = what `config` names.
        output: a folder to publish; replaced whole.
        like: a prepared folder whose template, loss and fit options raw rows follow.
        base: the model that the adapters change.
        baseline: an earlier evaluation.
        dialect: of raw `data`; default: told by the keys.
        config: a YAML file.
        options: over it.

    Raises:
        UsageError: the model, the data or an option cannot be used.
        HealthError: a set gives too few examples, or a loss is no number; nothing was published.
        StaleError: data were prepared with another tokenizer or template.
    """
    from turnmill.verbs.eval_sets import Typed
    from turnmill.verbs.evaluate import Request, publish_evaluated, refuse_other
    from turnmill.verbs.evaluate import evaluate as evaluated

    started = time.time()
    loaded, origins = _configured((), None, config, options)
    inputs = [data] if isinstance(data, str | Path) else list(data)
    said = (None if one is None else str(one) for one in (like, base, baseline))
    if output is not None:
        refuse_other(Path(output))
    made = evaluated(loaded, origins, Request(str(model), Typed(tuple(map(str, inputs)), dialect), *said))
    if output is not None:
        publish_evaluated(made, Path(output), loaded, started)
    return made


def all_sources() -> dict[str, PinnedSource]:
    """Every public dataset that turnmill takes to chats, by name."""
    from turnmill.sources import all_sources as every

    return every()


def source_steps(name: str, *, template: str = "chatml", limit: int | None = None) -> SourceNodes:
    """The steps of a public dataset: `.conversations`, `.rendered`, `.normalized` and what they are made of.

    Args:
        name: of the source, or `path/to/mine.py:function`.
        template: what its chats are rendered with: a file, or the name of one of turnmill's own.
        limit: take so many records, of the first file alone.

    Raises:
        UnknownName: no such source.
    """
    from turnmill.verbs.render import template_alone
    from turnmill.verbs.source_steps import Limits, nodes_of

    return nodes_of(name, template_alone(template), Limits(limit))


def run_steps(
    nodes: Sequence[Node],
    *,
    cache: str | Path | None = None,
    executor: str = "local",
    workers: int | None = None,
    max_concurrent: int = 2,
    dry_run: bool = False,
) -> list[Outcome]:
    """Build steps and what they need, each once; what is built already stays.

    With `local`, workers are spawned: call it under `if __name__ == "__main__"`.

    Args:
        nodes: what is wanted.
        cache: where finished steps lie, a folder or a store's URL; default that of `turnmill steps`.
        executor: what runs shards.
        workers: how many at once; default the number of cores.
        max_concurrent: how many steps at once.
        dry_run: look, and build nothing.

    Returns:
        What became of each step that was looked at, what is needed first.

    Raises:
        Exception: what the first step that failed raised; steps that do not need it went on.
    """
    from turnmill.steps.graph import check_outcomes, run
    from turnmill.verbs.steps import engine_of

    place = _place(cache)
    engine = engine_of(executor, workers, place.store)
    outcomes = run(nodes, place.folder, engine=engine, max_concurrent=max_concurrent, dry_run=dry_run)
    check_outcomes(outcomes)
    return outcomes


def read_artifact(step: Node | str | Path, kind: type[Result], *, cache: str | Path | None = None) -> Artifact[Result]:
    """What a finished step left: `.folder`, `.manifest` with counters and versions, and `.result` of a kind.

    Args:
        step: a node, or a step's folder.
        kind: `turnmill.Chats`, `turnmill.Texts`, or the `msgspec.Struct` of a graph of one's own.
        cache: where finished steps lie, for a node.

    Raises:
        UsageError: the step is not finished.
        StaleError: its result is of another kind.
    """
    from turnmill.steps.graph import Node
    from turnmill.steps.manifest import read_artifact as read_folder

    return read_folder(step.folder(_place(cache).folder) if isinstance(step, Node) else step, kind)


def _place(cache: str | Path | None) -> Place:
    from turnmill.steps.store import place_of
    from turnmill.verbs.steps import default_cache

    return place_of(None if cache is None else str(cache), default_cache())


def _model(model: str | None, template: str | None) -> dict[str, Any]:
    given = {"model.name_or_path": model, "model.template": template}
    return {path: value for path, value in given.items() if value is not None}


def _configured(
    data: Data, dialect: str | None, config: str | Path | None, options: Options | None
) -> tuple[Config, Origins]:
    from turnmill.config import load

    inputs = [data] if isinstance(data, str | Path) else list(data)
    given = dict(options or {})
    overrides = [(path, value if isinstance(value, str) else json.dumps(value)) for path, value in given.items()]
    return load(config, overrides, [str(one) for one in inputs], dialect)


@lru_cache(maxsize=4)
def _renderer(model: str | None, template: str | None, options: str) -> Renderer:
    from turnmill.models import open_model
    from turnmill.verbs.tokenize import renderer_of

    loaded, _ = _configured((), None, None, {**_model(model, template), **json.loads(options)})
    return renderer_of(open_model(loaded.model), loaded.render)
