"""mix: what every source gives to an epoch, before or after a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
from turnmill.files.prepared import PreparedData
from turnmill.mix import Share, Size, shares, stored
from turnmill.options import Mix
from turnmill.verbs.read import OpenSource

if TYPE_CHECKING:
    from turnmill.config import Config


def of_folder(folder: Path) -> list[Share]:
    """What each source gives to an epoch of a prepared folder; without weights, every example once.

    Raises:
        UsageError: not a prepared folder.
        StaleError: a file is missing or changed.
    """
    prepared = PreparedData(folder, whole=False)
    mixed = prepared.epochs_recipe["mix"].get("train")
    if mixed is not None:
        return [stored(share) for share in mixed]
    found = prepared.report["per_source"]
    if not isinstance(found, dict):
        raise UsageError(f"{folder} has no report", next_step=f"ls {shell_word(folder)}")
    total = sum(part["examples"] for part in found.values()) or 1
    return [
        Share(
            name,
            Size(part["examples"], part["tokens"]["total"], part["trained_tokens"]["total"]),
            part["examples"] / total,
            part["examples"],
        )
        for name, part in found.items()
    ]


def of_data(opened: Sequence[OpenSource], config: Config) -> list[Share]:
    """What each source would give, if every row that is read became one example: tokens are not known before a run."""
    rows = {one.source.name: sum(shard.rows for shard in one.plan.shards) for one in opened}
    return of_rows(rows, {source.name: source.weight for source in config.sources}, config.mix)


def of_rows(rows: Mapping[str, int], weights: Mapping[str, float | None], options: Mix) -> list[Share]:
    """What each source would give, if every row became one example.

    Args:
        rows: by source, in the order of reading.
        weights: by source; None where none is given.
        options: the `mix` section; weights are of rows, whatever it says.

    Raises:
        UsageError: as `mix.shares`.
    """
    sizes = {name: Size(count, 0, 0) for name, count in rows.items()}
    return shares(sizes, weights, dataclasses.replace(options, unit="rows"))


def warnings_of(mixed: Sequence[Share]) -> list[str]:
    """What a person should know: sources that give nothing, and such as are gone through again and again."""
    found = [f"mix: source {share.source!r} is empty" for share in mixed if not share.size.examples]
    found += [
        f"mix: source {share.source!r} has {share.size.examples:,} examples and gives none (weight {share.weight:g})"
        for share in mixed
        if share.size.examples and not share.drawn
    ]
    return found + [
        f"mix: source {share.source!r} is gone through {share.passes:.1f} times an epoch; `mix.max_passes` bounds that"
        for share in mixed
        if share.passes > MANY_PASSES
    ]


MANY_PASSES = 4.0
"""More repetitions than that are known to give little (Muennighoff et al., 2023, arXiv:2305.16264)."""


def as_json(mixed: Sequence[Share]) -> dict[str, Json]:
    """`{"examples": an epoch, "sources": […]}`."""
    return {"examples": sum(share.drawn for share in mixed), "sources": [share.as_json for share in mixed]}
