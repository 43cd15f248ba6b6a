"""Raw rows to examples that are scored: by the row pipeline of training, and no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from turnmill.conversation import Checked, Json
from turnmill.errors import HealthError
from turnmill.evaluation.sets import sampled
from turnmill.options import Source
from turnmill.rendered import Example
from turnmill.verbs import check, tokenize
from turnmill.verbs.read import OpenSource, open_sources
from turnmill.verbs.rows import rows_of
from turnmill.verbs.tokenize import Recipe

if TYPE_CHECKING:
    from turnmill.config import Config


class Draw(NamedTuple):
    """Which rows are taken."""

    samples: int | None = None
    """How many; None: all."""
    seed: int = 0


class MadeRows(NamedTuple):
    """The examples of one source's rows."""

    examples: list[Example]
    about: dict[str, Json]
    """Its files, and what became of its rows."""
    warning: str | None
    """Where a small source lost many rows."""


def made_rows(source: Source, config: Config, recipe: Recipe, draw: Draw) -> MadeRows:
    """The examples of a source's rows, or of as many as are drawn.

    Args:
        source: what is read.
        config: the sections by which it is read, checked and filtered.
        recipe: how a row becomes examples.
        draw: which of the good rows.

    Raises:
        UsageError: nothing found, or it cannot be read.
        HealthError: too many of its rows give no example.
    """
    of_source = config.model_copy(update={"sources": (source,)})
    (opened,) = open_sources(of_source)
    counts: Counter[str] = Counter()
    rows = [row.checked for row in rows_of(opened, of_source, counts) if row.fault is None and row.checked is not None]
    ids = [row.id for row in rows]
    drawn = sampled(ids, draw.samples, draw.seed).tolist()
    examples = list(_examples([rows[place] for place in drawn], [ids[place] for place in drawn], recipe, counts))
    next_step = check.show_command(opened)
    warning = check.check_health(source.name, counts, of_source.of(source).health, next_step)
    if not examples:
        what = f"source {source.name!r}: none of the {len(drawn):,} rows that were drawn gives an example"
        raise HealthError(what, next_step=next_step)
    return MadeRows(examples, _about(opened, counts, len(drawn)), warning)


def _examples(rows: Sequence[Checked], ids: Sequence[str], recipe: Recipe, counts: Counter[str]) -> Iterator[Example]:
    """The examples of the rows; those that have none are counted as rejected."""
    line = tokenize.line_of(recipe)
    line.clear()
    waiting = iter(zip(rows, ids, strict=True))
    while batch := list(islice(waiting, tokenize.BATCH)):
        for made in line.run([row for row, _ in batch], recipe, [row_id for _, row_id in batch]):
            if not made.parts:
                counts["rows/rejected"] += 1
                counts["rows/checked"] -= 1
                counts[f"codes/{made.fault.code if made.fault else 'no-trainable-tokens'}"] += 1
            for part in made.parts:
                yield part.example


def _about(opened: OpenSource, counts: Counter[str], drawn: int) -> dict[str, Json]:
    files: list[Json] = [
        {"name": file.name, "sha256": file.sha256, "bytes": file.bytes, "rows": file.rows} for file in opened.plan.files
    ]
    codes = {name.removeprefix("codes/"): count for name, count in counts.items() if name.startswith("codes/")}
    rows: dict[str, Json] = {"read": counts["rows/read"], "rejected": counts["rows/rejected"], "drawn": drawn}
    return {"files": files, "dialects": dict(opened.dialects), "rows": rows, "codes": dict(sorted(codes.items()))}
