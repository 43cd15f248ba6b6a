"""render IN --output OUT: every row's text, published whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from turnmill.conversation import Json
from turnmill.errors import UsageError
from turnmill.executors import executors
from turnmill.executors.local import workers_kept
from turnmill.files.inventory import rows_of
from turnmill.files.publish import publish
from turnmill.steps.build import Engine, Progress
from turnmill.steps.shards import ShardResult, sums
from turnmill.steps.store import Place
from turnmill.verbs import check, render
from turnmill.verbs.built import Builder, Built
from turnmill.verbs.prepare import check_sayable
from turnmill.verbs.read import OpenSource, open_sources
from turnmill.verbs.render import Wording

if TYPE_CHECKING:
    from turnmill.config import Config

KIND = "rendered"


class RenderPlan(NamedTuple):
    """What a run will do: nothing is written yet."""

    config: Config
    opened: list[OpenSource]
    wordings: dict[str, Wording]
    """By source."""


class RenderedTexts(NamedTuple):
    """A finished run before it is published."""

    checks: dict[str, Built]
    texts: dict[str, Built]

    @property
    def rows(self) -> dict[str, int]:
        """What became of the rows: rendered, and rejected at check or render."""
        checked = sums([result for built in self.checks.values() for result in built.results])
        said = sums([result for built in self.texts.values() for result in built.results])
        rejected = checked.get("rows/rejected", 0) + said.get("rows/rejected", 0)
        return {"read": checked["rows/read"], "rendered": said.get("rows/accepted", 0), "rejected": rejected}


def plan_of(config: Config) -> RenderPlan:
    """Open the sources and the template.

    Raises:
        UsageError: a source, the model or an option cannot be used; nothing was written.
    """
    if not config.sources:
        raise UsageError("no data given: expected files, or `sources` in the config", next_step="turnmill render -h")
    wordings = {}
    for source in config.sources:
        own = config.of(source)
        kwargs = {**config.render.template_kwargs, **source.template_kwargs}
        wordings[source.name] = Wording(config.model, own.render, kwargs)
        render.model_of(wordings[source.name])
    return RenderPlan(config, open_sources(config), wordings)


def run(plan: RenderPlan, cache: Place, progress: Progress | None = None) -> RenderedTexts:
    """Check and render every row; none is let go by a filter or as a duplicate.

    Raises:
        HealthError: a source lost too many rows; nothing is published.
    """
    config = plan.config
    workers = config.workers or os.cpu_count() or 1
    builder = Builder(cache.folder, Engine(executors.get(config.executor), workers, progress, cache.store))
    with workers_kept():
        checks = {opened.source.name: _check(builder, plan, opened) for opened in plan.opened}
        return RenderedTexts(checks, {name: _render(builder, plan, name, built) for name, built in checks.items()})


def _check(builder: Builder, plan: RenderPlan, opened: OpenSource) -> Built:
    config = plan.config
    step = check.step_of(opened, config)

    def finish(_: Path, results: Sequence[ShardResult]) -> Mapping[str, Json]:
        check.check_source(opened, config, results)
        return {}

    tasks = check.tasks_of(opened, config, step.fingerprint)
    return builder.build(step, tasks, check.run_shard, finish, rows=[task.shard.rows for task in tasks])


def _render(builder: Builder, plan: RenderPlan, name: str, checked: Built) -> Built:
    wording = plan.wordings[name]
    step = render.step_of(checked.step, wording)

    def finish(_: Path, results: Sequence[ShardResult]) -> Mapping[str, Json]:
        check_sayable(name, sums(results), wording.render, render.model_of(wording).name)
        return {}

    tasks = render.tasks_of(checked.file(check.CONVERSATIONS), wording, step.fingerprint)
    return builder.build(step, tasks, render.run_shard, finish, rows=[task.groups.rows for task in tasks])


def publish_texts(plan: RenderPlan, made: RenderedTexts, output: Path) -> dict[str, Json]:
    """Publish OUT whole and give the answer."""
    contents: dict[str, Path | bytes] = {}
    contents.update(_numbered("texts/part-{:05d}.parquet", made.texts.values(), render.TEXTS))
    leaving = [*made.checks.values(), *made.texts.values()]
    contents.update(_numbered("quarantine/part-{:05d}.parquet", leaving, check.QUARANTINE))
    templates = {name: render.template_digest(render.model_of(wording)) for name, wording in plan.wordings.items()}
    steps: list[Json] = [{"name": one.step.name, "fingerprint": one.step.fingerprint} for one in leaving]
    rows: dict[str, Json] = dict(made.rows)
    about: dict[str, Json] = {"kind": KIND, "rows": rows, "templates": dict(templates), "steps": steps}
    publish(contents, output, about=about)
    return {"output": str(output), "rows": rows, "templates": dict(templates)}


def _numbered(pattern: str, built: Iterable[Built], name: str) -> Iterator[tuple[str, Path]]:
    paths = [path for one in built for path in one.file(name)]
    for number, path in enumerate(path for path in paths if rows_of(path)):
        yield pattern.format(number), path
