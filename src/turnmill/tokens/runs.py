"""Spans of characters to runs of tokens: whose each token is, and what it weighs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.rendered import Run, Span
from turnmill.tokens.loss import Policy


class Labelled(NamedTuple):
    """The runs of one text."""

    runs: list[Run]
    """Covering its tokens; none where nothing trains."""
    turn_ends: list[int]
    """Token offsets behind the last trained token of each trained turn."""
    straddling: int
    """Tokens that have characters that train and characters that do not: they do not train."""


class _Stretch(NamedTuple):
    """Tokens up to `end` that lie in the spans `low` to `high`: in one, but for a token that lies across edges."""

    end: int
    low: int
    high: int


class _Weighed(NamedTuple):
    """Tokens [start, end) of one span and turn, and their weight before turns are scaled."""

    start: int
    end: int
    span: int
    turn: int
    weight: float


def labelled(spans: Sequence[Span], weights: Sequence[float], policy: Policy, offsets: NDArray[np.int64]) -> Labelled:
    """The runs of a text, every token weighing as the least of the spans it lies in.

    Args:
        spans: of the text, disjoint, ordered, covering.
        weights: of each span, before turns are scaled.
        policy: the row's loss: turns and their scales.
        offsets: (tokens, 2): the characters [start, end) of each token.
    """
    weighed: list[_Weighed] = []
    straddling = start = 0
    for stretch in _stretches(spans, offsets):
        end, low, high = stretch
        weight = weights[low]
        if low != high:
            inside = weights[low : high + 1]
            weight = min(inside)
            straddling += weight == 0 and max(inside) > 0
        turn = policy.turn(spans[high]) if weight > 0 else -1
        weighed.append(_Weighed(start, end, high if weight > 0 else low, turn, weight))
        start = end
    if not any(one.weight > 0 for one in weighed):
        return Labelled([], [], straddling)
    return Labelled(_runs(spans, policy, weighed), _turn_ends(weighed), straddling)


def _stretches(spans: Sequence[Span], offsets: NDArray[np.int64]) -> Iterable[_Stretch]:
    """All tokens in order; a token that lies across an edge is a stretch of its own."""
    starts, reached = offsets[:, 0], np.maximum(offsets[:, 1] - 1, offsets[:, 0])
    ends = np.array([span.end for span in spans])
    ends[-1] = max(ends[-1], int(reached.max(initial=0)) + 1)
    edges = [0, *np.searchsorted(starts, ends).tolist()]  # the first token that begins in each span, and behind all
    across = np.flatnonzero(reached >= np.repeat(ends, np.diff(edges)))
    if not len(across):
        return [_Stretch(end, low, low) for low, (first, end) in enumerate(pairwise(edges)) if first < end]
    highs = np.searchsorted(ends, reached[across], side="right")
    return _split(edges, list(zip(across.tolist(), highs.tolist(), strict=True)))


def _split(edges: Sequence[int], across: Sequence[tuple[int, int]]) -> Iterator[_Stretch]:
    """The stretches where tokens lie across edges: (token, the last span it reaches into), in order."""
    waiting = iter([*across, (edges[-1], 0)])
    token, high = next(waiting)
    for low, (first, end) in enumerate(pairwise(edges)):
        while token < end:
            if first < token:
                yield _Stretch(token, low, low)
            yield _Stretch(token + 1, low, high)
            first = token + 1
            token, high = next(waiting)
        if first < end:
            yield _Stretch(end, low, low)


def _runs(spans: Sequence[Span], policy: Policy, weighed: Sequence[_Weighed]) -> list[Run]:
    """The runs with scaled weights; neighbours that say the same are one."""
    counts: Counter[int] = Counter()
    for one in weighed:
        if one.weight > 0:
            counts[one.turn] += one.end - one.start
    scales = policy.scales(counts)
    runs: list[Run] = []
    for one in weighed:
        span, weight = spans[one.span], one.weight * scales.get(one.turn, 1.0) if scales else one.weight
        if runs and (runs[-1].message, runs[-1].kind, runs[-1].weight) == (span.message, span.kind, weight):
            runs.pop()
        runs.append(Run(one.end, span.message, span.kind, weight))
    return runs


def _turn_ends(weighed: Sequence[_Weighed]) -> list[int]:
    ends: list[int] = []
    previous = -1
    for one in weighed:
        if one.weight > 0 and one.turn >= 0:
            if one.turn == previous:
                ends.pop()
            ends.append(one.end)
            previous = one.turn
    return ends
