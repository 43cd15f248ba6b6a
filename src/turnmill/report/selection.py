"""What a selection did to its pool: sizes, perplexities, familiarity and groups, before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.selection import CODES, FAMILIARITY, Groups, Room, Scored, Selected
from turnmill.sorted_parts import Keys, nth_key, number_of_key, sortable

Mask = Callable[[slice], NDArray[np.bool_]]
"""Neighbouring rows → (rows,) which of them are meant."""


def pool_facts(
    scored: Scored, chosen: Selected, groups: Groups, *, is_scored: bool, room: Room | None = None
) -> dict[str, Json]:
    """JSON: `pool`, `selected` and `control`, each `{rows, tokens, trained_tokens, perplexity, familiarity, groups}`.

    Args:
        scored: the pool.
        chosen: what was decided of it.
        groups: of its rows.
        is_scored: whether perplexities are known.
        room: what may be held; None: memory.
    """
    room = Room() if room is None else room
    codes = sum((np.bincount(chosen.codes[part], minlength=len(CODES)) for part in room.parts(scored.rows)), 0)
    facts: dict[str, Json] = {
        "left": {CODES[code]: int(count) for code, count in enumerate(np.atleast_1d(codes)) if code and count}
    }
    masks: dict[str, Mask] = {
        "pool": lambda part: np.ones(len(chosen.codes[part]), np.bool_),
        "selected": lambda part: chosen.codes[part] == 0,
        "control": lambda part: chosen.in_control[part],
    }
    for name, mask in masks.items():
        found = _Sums(scored, chosen, groups, mask, room, is_scored=is_scored).as_json
        if name != "control" or found["rows"]:
            facts[name] = found
    return facts


class _Sums:
    """Sizes and perplexities of some rows, group by group."""

    def __init__(
        self, scored: Scored, chosen: Selected, groups: Groups, mask: Mask, room: Room, *, is_scored: bool
    ) -> None:
        self._names, self._is_scored = groups.names, is_scored
        count = len(groups.names)
        self._sizes = {name: np.zeros(count, np.int64) for name in ("rows", "tokens", "trained_tokens")}
        self._familiarity = np.zeros((count, len(FAMILIARITY)), np.int64)
        self._all: list[Keys] = []
        """Sorted keys of each part's perplexities."""
        self._by_group: list[tuple[Keys, NDArray[np.int64]]] = []
        """The same by group, and where each group's begin."""
        self._totals = np.zeros(count)
        for part in room.parts(scored.rows):
            rows = part.start + np.flatnonzero(mask(part))
            of = groups.of[rows]
            self._sizes["rows"] += np.bincount(of, minlength=count)
            for name in ("tokens", "trained_tokens"):
                self._sizes[name] += _summed(of, getattr(scored, name)[rows], count).astype(np.int64)
            if is_scored:
                for bucket in range(len(FAMILIARITY)):
                    self._familiarity[:, bucket] += np.bincount(of[chosen.familiarity[rows] == bucket], minlength=count)
                self._add(chosen.perplexity[rows], of, room)

    def _add(self, perplexities: NDArray[np.float64], of: NDArray[np.int32], room: Room) -> None:
        finite = np.isfinite(perplexities)
        keys, of = sortable(perplexities[finite]), of[finite]
        self._totals += _summed(of, perplexities[finite], len(self._names))
        order = np.lexsort((keys, of))
        borders = np.searchsorted(of[order], np.arange(len(self._names) + 1))
        self._all.append(room.kept(np.sort(keys)))
        self._by_group.append((room.kept(keys[order]), borders))

    @property
    def as_json(self) -> dict[str, Any]:
        """All rows together, and `groups`, the largest first."""
        by_size = sorted(range(len(self._names)), key=lambda number: -self._sizes["rows"][number])
        own = self._said(slice(None), self._all)
        return {**own, "groups": {self._names[number]: self._of_group(number) for number in by_size}}

    def _of_group(self, number: int) -> dict[str, Any]:
        keys = [kept[borders[number] : borders[number + 1]] for kept, borders in self._by_group]
        return self._said(slice(number, number + 1), keys)

    def _said(self, groups: slice, keys: Sequence[Keys]) -> dict[str, Any]:
        said: dict[str, Any] = {name: int(sizes[groups].sum()) for name, sizes in self._sizes.items()}
        if self._is_scored:
            counts = self._familiarity[groups].sum(axis=0).tolist()
            said["familiarity"] = dict(zip(FAMILIARITY, counts, strict=True))
            said["perplexity"] = _distribution(keys, float(self._totals[groups].sum()))
        return said


def _summed(of: NDArray[np.int32], values: NDArray[Any], count: int) -> NDArray[np.float64]:
    """(groups,) sums of the values of each."""
    return np.bincount(of, weights=values, minlength=count).astype(np.float64)


def distribution(values: NDArray[np.float64]) -> dict[str, float]:
    """Least, quartiles, greatest and mean of the finite values; empty where there are none."""
    finite = values[np.isfinite(values)]
    return _distribution([np.sort(sortable(finite))], float(finite.sum()))


def _distribution(keys: Sequence[Keys], total: float) -> dict[str, float]:
    count = sum(map(len, keys))
    if not count:
        return {}
    names = ("min", "quartile_1", "median", "quartile_3", "max")
    said = {name: _quantile(keys, (count - 1) * place / 4) for place, name in enumerate(names)}
    return {**said, "mean": total / count}


def _quantile(keys: Sequence[Keys], place: float) -> float:
    """The value at a place between two, in proportion."""
    low, high = (number_of_key(nth_key(keys, number)) for number in (math.floor(place), math.ceil(place)))
    return low + (high - low) * (place - math.floor(place))
