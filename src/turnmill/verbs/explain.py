"""explain: what becomes of single rows, of raw data or of a prepared folder, and why each message trains or not."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from turnmill.contract import readmit
from turnmill.conversation import Checked, Conversation
from turnmill.errors import Rejected, UsageError, quote
from turnmill.files import canonical, quarantine
from turnmill.files.quarantine import Left
from turnmill.files.record import Shard
from turnmill.files.tables import batches
from turnmill.models import open_model
from turnmill.options import Model, Render
from turnmill.rendered import Rendered
from turnmill.report.explained_tokens import Tokenized
from turnmill.report.explanation import Explanation, explain_accepted, explain_left, explain_together, place_of
from turnmill.tokens.loss import Policy
from turnmill.verbs.explain_costs import with_costs
from turnmill.verbs.read import open_sources
from turnmill.verbs.recipes import data_of, prepared_folder, stored_recipes
from turnmill.verbs.rows import ReadRow, rows_of
from turnmill.verbs.tokenize import Line, Recipe, Shown, line_of, max_tokens_of, recipe_of, renderer_of

if TYPE_CHECKING:
    from turnmill.config import Config, Origins
    from turnmill.rendering.renderer import Renderer

ALL = "all"
EARLY_STAGES = ("read", "convert", "repair", "check")
"""Where a row leaves as its record; at later stages it is a checked conversation."""


class Found(NamedTuple):
    """One row, wherever it was read."""

    row: int
    place: str
    source: str
    conversation: Conversation | None
    """None where the record could not be converted."""
    is_checked: bool
    fault: Rejected | None


class Selection:
    """Which rows to explain: a number, an id, or `all`.

    Raises:
        UsageError: none of these.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_all = text == ALL
        self.number = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
        self.id = text.lower() if re.fullmatch(r"[0-9A-Fa-f]{32}", text) else None
        if not self.is_all and self.number is None and self.id is None:
            what = f"ROW is {quote(text)}; expected a row's number from 0, its id (32 hex digits), or `all`"
            raise UsageError(what, next_step="turnmill explain --help")

    def takes(self, found: Found) -> bool:
        """Whether the row is one of them."""
        if self.is_all or self.number is not None:
            return self.is_all or found.row == self.number
        return found.is_checked and found.conversation is not None and found.conversation.id == self.id


def explain(
    config: Config, origins: Origins, selection: Selection, renderer: Callable[[], Renderer] | None = None
) -> Iterator[Explanation]:
    """The chosen rows, in order; reading ends at the row that was asked for.

    Args:
        config: its sources are raw data, or one prepared folder.
        origins: what of the config was typed on the command line: over a prepared folder's own recipe.
        selection: the rows.
        renderer: makes, once a row was read, what renders it where the config names a template and no model.

    Raises:
        UsageError: no such row, or no model for a row that needs one.
    """
    folder = prepared_folder(config)
    if folder is None:
        rows, recipes = _raw_rows(config, selection), {one.name: recipe_of(config, one) for one in config.sources}
    else:
        rows, recipes = _prepared_rows(folder, selection), stored_recipes(folder, config, origins)
    for found in rows:
        if selection.takes(found):
            explained = _explained(found, recipes[found.source], renderer)
            yield with_costs(explained, config.score, recipes[found.source].model) if config.score.on else explained
            if not selection.is_all:
                return
    if not selection.is_all:
        message = (
            f"no row {selection.text} in {', '.join(data_of(config))}; rows are numbered from 0, over all the data"
        )
        raise UsageError(message, next_step=f"turnmill explain {shlex.join(data_of(config))} all")


def _raw_rows(config: Config, selection: Selection) -> Iterator[Found]:
    for opened in open_sources(config):
        if selection.number is not None and not _holds(opened.plan.shards, selection.number):
            continue
        for row in rows_of(opened, config, Counter(), only_row=selection.number):
            yield _found(row)


def _holds(shards: tuple[Shard, ...], row: int) -> bool:
    return any(shard.first_row <= row < shard.first_row + shard.rows for shard in shards)


def _found(row: ReadRow) -> Found:
    record = row.record
    place = f"{record.source}: {record.source_file}:{record.source_line}"
    return Found(record.row, place, record.source, row.conversation, row.checked is not None, row.fault)


def _prepared_rows(folder: Path, selection: Selection) -> Iterator[Found]:
    """The rows of a prepared folder, those that left too, in the order of their numbers."""
    stays = [_kept(path, selection) for path in sorted((folder / "conversations").rglob("*.parquet"))]
    leaves = [
        _left(path) for name in ("quarantine", "duplicates") for path in sorted((folder / name).glob("*.parquet"))
    ]
    return merge(*stays, *leaves, key=lambda found: found.row)


def _kept(path: Path, selection: Selection) -> Iterator[Found]:
    for batch in batches(path):
        if selection.number is not None and selection.number not in batch.column("row").to_pylist():
            continue
        for conversation in canonical.readmit(batch):
            place = place_of(conversation)
            yield Found(conversation.meta["row"], place, conversation.source, conversation, True, None)


def _left(path: Path) -> Iterator[Found]:
    for batch in batches(path):
        yield from map(_found_left, quarantine.from_table(batch))


def _found_left(left: Left) -> Found:
    is_checked = left.stage not in EARLY_STAGES
    conversation = canonical.from_row(json.loads(left.record)) if is_checked else None
    place = f"{left.source}: {left.source_file}:{left.source_line}"
    fault = Rejected(left.code, left.message, at=left.at)
    return Found(left.row, place, left.source, conversation, is_checked, fault)


def _explained(found: Found, recipe: Recipe, renderer: Callable[[], Renderer] | None) -> Explanation:
    conversation = found.conversation
    if conversation is None or not found.is_checked or (found.fault is not None and not _names_model(recipe.model)):
        return _explained_left(found, found.fault, None)
    row = readmit(conversation)
    if recipe.model.name_or_path is None or found.fault is not None:
        return _explained_text(found, row, recipe, renderer() if renderer else None)
    line = line_of(recipe)
    if not recipe.max_tokens:
        recipe = dataclasses.replace(recipe, max_tokens=max_tokens_of(recipe.fit, line.model))
    made = next(line.run([row], recipe))
    if made.rendered is None or not made.parts:
        return _explained_left(found, made.fault, made.rendered)
    if made.views:
        explained = _explained_views(found, row, line, made.views, recipe)
    else:
        tokenized = _tokenized(line, Shown(row, made.rendered, made.parts), recipe)
        explained = explain_accepted(found.row, found.place, row, made.rendered, Policy(row, recipe.loss), tokenized)
    return msgspec.structs.replace(explained, max_tokens=recipe.max_tokens)


def _tokenized(line: Line, shown: Shown, recipe: Recipe) -> Tokenized:
    encoder = line.tokenizing.encoder
    encoded = line.tokenizing.placed(shown.conversation, shown.rendered, recipe.loss)
    return Tokenized(shown.parts, encoded.ids, encoded.offsets, encoder.is_control(encoded.ids), encoder.bytes_of)


def _explained_views(found: Found, row: Checked, line: Line, views: Sequence[Shown], recipe: Recipe) -> Explanation:
    """A row that trains in several renders: the last one's text, and the examples of all."""
    policy = Policy(row, recipe.loss)
    explained = []
    for shown in views:
        of_view, tokenized = Policy(shown.conversation, recipe.loss), _tokenized(line, shown, recipe)
        one = explain_accepted(
            found.row, found.place, shown.conversation, shown.rendered, of_view, tokenized, own_policy=policy
        )
        explained.append(one)
    return explain_together(row, explained, policy, views[-1].rendered)


def _names_model(model: Model) -> bool:
    return model.name_or_path is not None or model.template is not None


def _explained_text(found: Found, row: Checked, recipe: Recipe, renderer: Renderer | None) -> Explanation:
    """A row without tokens: there is no tokenizer, or it leaves all the same."""
    try:
        rendered = (renderer or _renderer(recipe)).render(row, recipe.template_kwargs, recipe.control_tokens)
    except Rejected as fault:
        return _explained_left(found, found.fault or fault, None)
    if found.fault is not None:
        return _explained_left(found, found.fault, rendered)
    return explain_accepted(found.row, found.place, row, rendered, Policy(row, recipe.loss), None)


def _explained_left(found: Found, fault: Rejected | None, rendered: Rendered | None) -> Explanation:
    why = fault or Rejected("no-trainable-tokens", "the row gave no example")
    conversation = found.conversation
    return explain_left(found.row, found.place, why, conversation, has_id=found.is_checked, rendered=rendered)


def _renderer(recipe: Recipe) -> Renderer:
    if recipe.model.name_or_path is not None:
        return line_of(recipe).renderer
    return _template_renderer(msgspec.json.encode((recipe.model, recipe.render)))


@lru_cache(maxsize=4)
def _template_renderer(key: bytes) -> Renderer:
    model, render = msgspec.json.decode(key, type=tuple[Model, Render])
    return renderer_of(open_model(model), render)
