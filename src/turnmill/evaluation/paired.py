"""Two evaluations row by row: how much a model's loss differs, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.evaluation.results import GROUPS, Group, ItemLoss, Loss

Key = tuple[str, str]
"""Set and row."""


class Difference(NamedTuple):
    """What the second model's loss is above the first's, over the rows that both scored."""

    rows: int
    tokens: int
    first: float
    """Loss, nats a token."""
    second: float
    difference: float
    """Second minus first: of all tokens together."""
    standard_error: float | None
    """Of the difference, rows being drawn; None of one row."""
    mean_difference: float
    """Of the rows' losses, each row counted alike."""
    mean_standard_error: float | None
    better: int
    """Rows whose loss fell."""
    worse: int

    def is_rise(self, least: float) -> bool:
        """Whether the loss rose by more than `least`, and by more than two standard errors."""
        return self.difference > max(least, 2 * (self.standard_error or 0.0))

    def as_json(self) -> dict[str, Json]:
        """For programs."""
        return dict(self._asdict())


class Compared(NamedTuple):
    """Two evaluations."""

    total: Difference | None
    """None where they have no row in common."""
    sets: dict[str, Difference]
    groups: dict[Group, Difference]
    only_first: int
    """Rows."""
    only_second: int
    other_tokens: int
    """Rows of both whose scored tokens are not as many: by another tokenizer or mask. They are not compared."""

    def as_json(self) -> dict[str, Json]:
        """For programs."""
        return {
            "total": None if self.total is None else self.total.as_json(),
            "sets": {name: one.as_json() for name, one in self.sets.items()},
            "kinds": {name: one.as_json() for name, one in self.groups.items()},
            "only_a": self.only_first,
            "only_b": self.only_second,
            "other_tokens": self.other_tokens,
        }


class Row(NamedTuple):
    """All parts of a row together."""

    total: Loss
    groups: dict[Group, Loss]


Pair = tuple[Loss, Loss]


def compared(first: Iterable[ItemLoss], second: Iterable[ItemLoss]) -> Compared:
    """The second's losses beside the first's, over the rows of both.

    Args:
        first: examples of one evaluation.
        second: of the other.
    """
    ours, theirs = rows_of(first), rows_of(second)
    both = [key for key in ours if key in theirs]
    alike = [key for key in both if _tokens(ours[key]) == _tokens(theirs[key])]
    by_set: dict[str, list[Pair]] = {}
    by_group: dict[Group, list[Pair]] = {group: [] for group in GROUPS}
    for key in alike:
        one, other = ours[key], theirs[key]
        by_set.setdefault(key[0], []).append((one.total, other.total))
        for group in one.groups.keys() & other.groups.keys():
            by_group[group].append((one.groups[group], other.groups[group]))
    everything = [pair for pairs in by_set.values() for pair in pairs]
    return Compared(
        total=difference(everything) if everything else None,
        sets={name: difference(pairs) for name, pairs in by_set.items()},
        groups={group: difference(pairs) for group, pairs in by_group.items() if pairs},
        only_first=len(ours) - len(both),
        only_second=len(theirs) - len(both),
        other_tokens=len(both) - len(alike),
    )


def rows_of(items: Iterable[ItemLoss]) -> dict[Key, Row]:
    """The rows that were scored: parts of one are one, for what they cost hangs together."""
    rows: dict[Key, Row] = {}
    for item in items:
        if item.unscored is not None or not item.total.weight:
            continue
        key = (item.set, item.row_id)
        known = rows.get(key, Row(Loss(), {}))
        groups = {**known.groups}
        for group, loss in item.groups.items():
            groups[group] = groups.get(group, Loss()) + loss
        rows[key] = Row(known.total + item.total, groups)
    return rows


def _tokens(row: Row) -> tuple[int, float]:
    return row.total.tokens, row.total.weight


def difference(pairs: Sequence[Pair]) -> Difference:
    """The difference over some rows.

    The standard error is that of a ratio of sums over rows (Cochran, Sampling Techniques, 1977, §6.4).
    """
    weights = np.array([one.weight for one, _ in pairs])
    first, second = (np.array([pair[side].weighted_nll for pair in pairs]) for side in (0, 1))
    whole = weights.sum()
    found = float((second - first).sum() / whole)
    of_rows = (second - first) / weights
    return Difference(
        rows=len(pairs),
        tokens=sum(one.tokens for one, _ in pairs),
        first=float(first.sum() / whole),
        second=float(second.sum() / whole),
        difference=found,
        standard_error=_error_of_mean(len(pairs) * (second - first - found * weights) / whole),
        mean_difference=float(of_rows.mean()),
        mean_standard_error=_error_of_mean(of_rows),
        better=int((of_rows < 0).sum()),
        worse=int((of_rows > 0).sum()),
    )


def _error_of_mean(values: NDArray[np.float64]) -> float | None:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
