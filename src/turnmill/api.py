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
from typing import TYPE_CHECKING, Any

from turnmill.errors import UsageError

if TYPE_CHECKING:
    from turnmill.config import Config, Origins
    from turnmill.conversation import Checked, Conversation
    from turnmill.files.prepared import PreparedData, Side
    from turnmill.files.quarantine import Left
    from turnmill.rendered import Rendered
    from turnmill.rendering.renderer import Renderer
    from turnmill.report.explanation import Explanation
    from turnmill.stream.row_stream import RowStream
    from turnmill.verbs.rows import ReadRow

Data = str | Path | Sequence[str | Path]
"""One input or several: paths, directories, globs; `NAME=PATH` names its source."""
Options = Mapping[str, Any]


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
        cache: where finished steps are kept; default beside the output.

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
        prepared = run(plan, cache_of(target, None if cache is None else Path(cache)))
        publish_prepared(plan, prepared, target, started)
    return open_prepared(target, whole=False)


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
