"""The rows of datasets: what two datasets share, and one row under a template."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnmill.errors import UsageError
from turnmill.shelf.content import copied, line_row, row_outcomes, source_of
from turnmill.shelf.manifest import Manifest
from turnmill.shelf.profile import MAX_TOLD_ROWS
from turnmill.shelf.scored_row import explain_scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from turnmill.conversation import Json

MAX_COMPARED_SECONDS = 60.0
ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class _Ids:
    """Rows by the ids of their conversations, and where each stands."""

    ids: NDArray[np.void]
    lines: NDArray[np.int64]
    rejected: int


class TookTooLong(UsageError):
    """Rows were looked at for as long as one answer may take, and were not all of them."""


def shared_rows(
    here: tuple[Path, Manifest], there: tuple[Path, Manifest], *, max_seconds: float = MAX_COMPARED_SECONDS
) -> dict[str, Any]:
    """What two datasets have in common, by the ids of their conversations; a row's id takes 24 bytes meanwhile.

    Args:
        here: directory and manifest of a dataset.
        there: of the one that it is held against.
        max_seconds: of both together.

    Raises:
        UsageError: as `profile_of`.
        TookTooLong: there are too many rows.
    """
    import numpy as np

    until = time.monotonic() + max_seconds
    both = [_ids(folder, manifest, until) for folder, manifest in (here, there)]
    lacking = [~np.isin(one.ids, other.ids) for one, other in (both, both[::-1])]
    return {
        "rows": [len(one.ids) for one in both],
        "rejected": [one.rejected for one in both],
        "shared": len(np.intersect1d(both[0].ids, both[1].ids)),
        "only": [len(np.unique(one.ids[which])) for one, which in zip(both, lacking, strict=True)],
        "lines": [one.lines[which][:MAX_TOLD_ROWS].tolist() for one, which in zip(both, lacking, strict=True)],
    }


def _ids(folder: Path, manifest: Manifest, until: float) -> _Ids:
    from array import array

    import numpy as np

    ids, lines, rejected = bytearray(), array("q"), 0
    for outcome in row_outcomes(folder, manifest):
        if time.monotonic() > until:
            raise TookTooLong(f"the rows of {manifest.name} are too many to be compared here")
        if outcome.checked is None:
            rejected += 1
            continue
        ids += bytes.fromhex(outcome.checked.id)
        lines.append(outcome.record.source_line)
    return _Ids(np.frombuffer(ids, f"S{ID_BYTES}"), np.frombuffer(lines, np.int64), rejected)


def explain_row(
    folder: Path,
    manifest: Manifest,
    line: int,
    sections: Mapping[str, Any],
    template_text: str | None = None,
    *,
    is_scored: bool = False,
) -> dict[str, Json]:
    """One row as `turnmill explain --json` says it.

    Args:
        folder: the dataset's real directory.
        manifest: of the dataset.
        line: on which it stands, from 1; of a file that is not JSON lines, the row.
        sections: of the config: `model`, and what is to differ from the defaults of `render`, `loss` and `fit`.
        template_text: a stranger's template, rendered in a limited process in place of the model's.
        is_scored: say what each token costs the model, which is loaded for it in a process of its own.

    Raises:
        UsageError: no such row, or the model or the template cannot be used.
    """
    row = line_row(folder, manifest, line)
    with copied(folder, manifest) as path:
        try:
            if is_scored:
                return explain_scored(source_of(path, manifest), row, dict(sections))
            return _explained(source_of(path, manifest), row, dict(sections), template_text)
        except UsageError as error:
            error.message = error.message.replace(str(path), manifest.file)
            raise


def _explained(
    source: dict[str, Json], row: int, sections: dict[str, Any], template_text: str | None
) -> dict[str, Json]:
    from turnmill.config import reloaded
    from turnmill.shelf.foreign_template import explain_foreign
    from turnmill.verbs.explain import Selection, explain

    if template_text is not None:
        model = sections.pop("model")
        return explain_foreign(source, row, template_text, model.get("special_tokens") or {}, sections)
    config = reloaded({"sources": [source], **sections})
    return next(explain(config, {}, Selection(str(row)))).as_json()
