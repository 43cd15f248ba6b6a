"""compare, of two evaluations: row by row, how much the second's loss differs, and how sure that is."""

from __future__ import annotations

from pathlib import Path

from turnmill.conversation import Json
from turnmill.errors import UsageError
from turnmill.evaluation.paired import Compared, compared
from turnmill.files.evaluations import KIND, StoredEvaluation
from turnmill.files.inventory import MANIFEST, read_manifest


def kind_of(folder: str) -> str | None:
    """What a folder's manifest says that it is; None where there is no such folder."""
    path = Path(folder)
    return str(read_manifest(path).get("kind")) if (path / MANIFEST).is_file() else None


def are_evaluations(first: str, second: str | None) -> bool:
    """Whether two folders are evaluations.

    Raises:
        UsageError: one of them is, and the other is something else or missing.
    """
    kinds = {name: kind_of(name) for name in (first, second) if name is not None}
    of_evaluations = [name for name, kind in kinds.items() if kind == KIND]
    if len(of_evaluations) == len(kinds) and second is not None:
        return True
    if of_evaluations:
        (mine, *_) = of_evaluations
        others = [f"{name} is {_told(kind)}" for name, kind in kinds.items() if kind != KIND] or ["nothing beside it"]
        what = f"{mine} is an evaluation, {others[0]}; expected two evaluations"
        raise UsageError(what, next_step="turnmill evaluate MODEL --data OUT --output OTHER")
    return False


def _told(kind: str | None) -> str:
    return "no folder of turnmill's" if kind is None else f"a folder of the kind {kind!r}"


def compare(first: str, second: str) -> Compared:
    """The second evaluation beside the first.

    Raises:
        UsageError: they have no row of the same tokens in common.
        StaleError: a file is missing or changed.
    """
    ours, theirs = StoredEvaluation(Path(first)), StoredEvaluation(Path(second))
    found = compared(ours.items(), theirs.items())
    if found.total is None:
        counts = f"{found.only_first:,} rows are only in the first, {found.only_second:,} only in the second"
        what = f"{first} and {second} have no row in common: {counts}, {found.other_tokens:,} are of other tokens"
        raise UsageError(what, next_step="turnmill evaluate MODEL --data OUT, for both on the same data")
    return found


def as_json(first: str, second: str, found: Compared) -> dict[str, Json]:
    """The answer of `compare --json`."""
    return {"a": {"name": first}, "b": {"name": second}, "kind": KIND, **found.as_json()}
