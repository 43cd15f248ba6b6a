"""compare, of two evaluations: row by row, how much the second's loss differs, and how sure that is."""

from __future__ import annotations

from pathlib import Path

from turnmill.conversation import Json
from turnmill.errors import UsageError, shell_word
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
    kinds = [kind_of(first), None if second is None else kind_of(second)]
    if kinds.count(KIND) == 1:
        other = [first, second][1 - kinds.index(KIND)]
        mine = [first, second][kinds.index(KIND)]
        what = f"{mine} is an evaluation"
        if other is None:
            raise UsageError(f"{what}; expected another to set beside it", next_step=f"turnmill compare {mine} OTHER")
        found = kinds[1 - kinds.index(KIND)]
        raise UsageError(
            f"{what} and {other} is {'none' if found is None else f'a folder of the kind {found!r}'}; "
            "expected two of one kind",
            next_step=f"turnmill evaluate MODEL --data OUT --output {shell_word(other)}",
        )
    return kinds[0] == KIND


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
