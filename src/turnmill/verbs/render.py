"""render: checked rows to `id, text`, by the model's own template."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from turnmill.conversation import Json
from turnmill.errors import Rejected
from turnmill.files.canonical import readmit
from turnmill.files.quarantine import from_conversation
from turnmill.files.tables import GroupRange, TableWriter, batches, group_ranges
from turnmill.files.texts import Text, text_schema, texts_table
from turnmill.models import LoadedModel, open_model
from turnmill.options import Model, Render
from turnmill.rendering.renderer import Renderer
from turnmill.steps.shards import ShardResult
from turnmill.steps.step import Step
from turnmill.verbs.check import left_writer
from turnmill.verbs.tokenize import TASK_ROWS, renderer_of

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = 1
TEXTS = "texts.parquet"
WITHOUT_BOS = {"bos_token": ""}
"""Whatever tokenizes a text puts its own in front."""


@dataclass(frozen=True, slots=True)
class RenderTask:
    """Some row groups of a file of checked rows."""

    conversations: str
    groups: GroupRange
    model: Model
    render: Render
    template: str
    """Hash of the template, which every file says: texts of two templates do not mix."""
    template_kwargs: dict[str, Any] = field(default_factory=dict)
    fingerprint: str = ""


class Wording(NamedTuple):
    """What turns conversations into text."""

    model: Model
    render: Render
    template_kwargs: dict[str, Any]


def template_alone(template: str) -> Wording:
    """What a template says by itself: a file, or the name of one of turnmill's own."""
    return Wording(Model(template=template), Render(), {})


def model_of(wording: Wording) -> LoadedModel:
    """The model whose template speaks, with no beginning-of-sequence token."""
    model = wording.model
    return open_model(dataclasses.replace(model, special_tokens={**model.special_tokens, **WITHOUT_BOS}))


def template_digest(model: LoadedModel) -> str:
    """Hex sha256 of a model's template."""
    return hashlib.sha256(model.template.encode("utf-8", "surrogatepass")).hexdigest()


def params_of(wording: Wording) -> dict[str, Json]:
    """All that can change a byte of the texts: the template itself, by its text."""
    model = model_of(wording)
    render: dict[str, Json] = msgspec.to_builtins(dataclasses.asdict(wording.render))
    for name in ("on_unsayable", "history", "add_stop"):  # none of them changes the text of a whole conversation
        del render[name]
    if "strftime_now" not in model.template:
        del render["date"]
    return {
        "template": model.template,
        "special_tokens": dict(sorted(model.special_tokens.items())),
        "added_tokens": [[token.content, token.special] for token in model.added_tokens],
        "render": render,
        "template_kwargs": wording.template_kwargs,
    }


def step_of(rows: Step, wording: Wording) -> Step:
    """The recipe of the texts of a step's rows."""
    return Step("render", VERSION, params_of(wording), (rows.fingerprint,))


def tasks_of(conversations: Sequence[Path], wording: Wording, fingerprint: str) -> list[RenderTask]:
    """The shards of files of checked rows."""
    template = template_digest(model_of(wording))
    return [
        RenderTask(str(path), groups, wording.model, wording.render, template, wording.template_kwargs, fingerprint)
        for path in conversations
        for groups in group_ranges(path, TASK_ROWS)
    ]


@lru_cache(maxsize=4)
def _renderer(key: bytes) -> Renderer:
    wording = Wording(*msgspec.json.decode(key, type=tuple[Model, Render, dict[str, Any]]))
    return renderer_of(model_of(wording), wording.render, accelerate=True)


def run_shard(task: RenderTask, folder: Path) -> ShardResult:
    """Write the texts of a file's rows, ids and repeated rows as they are, and the rows that leave.

    A text cannot tell control tokens that content wrote from the template's: such rows leave unless they are kept on
    purpose (`render.control_tokens: keep`).
    """
    renderer = _renderer(msgspec.json.encode((task.model, task.render, task.template_kwargs)))
    renderer.counts.clear()
    policy = "keep" if task.render.control_tokens == "keep" else "reject"
    counts: Counter[str] = Counter()
    schema = text_schema(task.template)
    with TableWriter(folder / TEXTS, schema, texts_table) as out, left_writer(folder) as left:
        for conversation, row_id in _rows(task):
            try:
                text = renderer.render(conversation, task.template_kwargs, policy).text
            except Rejected as fault:
                counts.update(("rows/rejected", "rows/rejected-at-render", f"codes/{fault.code}"))
                left.write(from_conversation(conversation, fault, stage="render", config=task.fingerprint))
                continue
            counts["rows/accepted"] += 1
            out.write(Text(row_id, text, None))
    return ShardResult(dict(counts + renderer.counts))


def _rows(task: RenderTask) -> Iterator[tuple[Any, str]]:
    for batch in batches(Path(task.conversations), groups=range(task.groups.first, task.groups.end)):
        yield from zip(readmit(batch), _ids(batch), strict=True)


def _ids(batch: pa.RecordBatch) -> list[str]:
    ids: list[str] = batch.column("id").to_pylist()
    return ids
