"""Spans of characters to runs of tokens: whose each token is, and what it weighs."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import eq, lt
from typing import NamedTuple

from turnmill.rendered import Kind, Run, Span
from turnmill.tokens.encoded import Edges
from turnmill.tokens.loss import Policy


class Labelled(NamedTuple):
    """The runs of one text."""

    runs: list[Run]
    """Covering its tokens; none where nothing trains."""
    turn_ends: list[int]
    """Token offsets behind the last trained token of each trained turn."""
    straddling: int
    """Tokens that have characters that train and characters that do not: they do not train."""


_Stretch = tuple[int, int, int]
"""Tokens up to the first number that lie in the spans of the others, from one to the last: in one span, but for a token
that lies across edges."""

_Weighed = tuple[int, int, int, int, float]
"""Tokens [start, end) of one span and turn (-1 for none), and their weight before turns are scaled."""


def labelled(spans: Sequence[Span], weights: Sequence[float], policy: Policy, edges: Edges) -> Labelled:
    """The runs of a text, every token weighing as the least of the spans it lies in.

    Args:
        spans: of the text, disjoint, ordered, covering.
        weights: of each span, before turns are scaled.
        policy: the row's loss: turns and their scales.
        edges: where the spans end among the text's tokens.
    """
    begun = edges.begun
    across = [(bisect_right(begun, token), high) for token, high in edges.across]
    says = [(span.message, span.kind, weight) for span, weight in zip(spans, weights, strict=True)]
    if policy.scales_turns or not _is_plain(begun, says) or any(weights[low] > 0 for low, _ in across):
        return _labelled(spans, weights, policy, _split([0, *begun], edges.across))
    straddling = sum(max(weights[low : high + 1]) > 0 for low, high in across)
    trained = [(end, policy.turn(span)) for span, end, weight in zip(spans, begun, weights, strict=True) if weight > 0]
    runs = [Run(end, *said) for end, said in zip(begun, says, strict=True)] if trained else []
    return Labelled(runs, _last_of_turns(trained), straddling)


_Said = tuple[int, Kind, float]
"""Message, kind and weight of a run."""


def _is_plain(begun: Sequence[int], says: Sequence[_Said]) -> bool:
    """Whether each span is a run: a token begins in it, and the next says something else.

    A token that goes on behind a span that does not train is that span's.
    """
    return all(map(lt, [0, *begun], begun)) and not any(map(eq, says, says[1:]))


def _labelled(
    spans: Sequence[Span], weights: Sequence[float], policy: Policy, stretches: Iterable[_Stretch]
) -> Labelled:
    weighed: list[_Weighed] = []
    straddling = start = 0
    for end, low, high in stretches:
        weight = weights[low]
        if low != high:
            inside = weights[low : high + 1]
            weight = min(inside)
            straddling += weight == 0 and max(inside) > 0
        turn, span = (policy.turn(spans[high]), high) if weight > 0 else (-1, low)
        weighed.append((start, end, span, turn, weight))
        start = end
    if not any(weight > 0 for *_, weight in weighed):
        return Labelled([], [], straddling)
    return Labelled(_runs(spans, policy, weighed), _turn_ends(weighed), straddling)


def _split(edges: Sequence[int], across: Sequence[tuple[int, int]]) -> Iterator[_Stretch]:
    """All tokens in order; one that lies across edges (with the last span it reaches into) is a stretch of its own."""
    waiting = iter([*across, (edges[-1], 0)])
    token, high = next(waiting)
    for low, (first, end) in enumerate(pairwise(edges)):
        while token < end:
            if first < token:
                yield token, low, low
            yield token + 1, low, high
            first = token + 1
            token, high = next(waiting)
        if first < end:
            yield end, low, low


def _runs(spans: Sequence[Span], policy: Policy, weighed: Sequence[_Weighed]) -> list[Run]:
    """The runs with scaled weights; neighbours that say the same are one."""
    scales = policy.scales(_tokens_of_turns(weighed)) if policy.scales_turns else {}
    ends: list[int] = []
    said: list[_Said] = []
    for _, end, number, turn, weight in weighed:
        span = spans[number]
        says = (span.message, span.kind, weight * scales.get(turn, 1.0) if scales else weight)
        if said and said[-1] == says:
            ends[-1] = end
        else:
            ends.append(end)
            said.append(says)
    return [Run(end, *says) for end, says in zip(ends, said, strict=True)]


def _tokens_of_turns(weighed: Sequence[_Weighed]) -> Counter[int]:
    """Turn → its tokens that train."""
    counts: Counter[int] = Counter()
    for start, end, _, turn, weight in weighed:
        if weight > 0:
            counts[turn] += end - start
    return counts


def _turn_ends(weighed: Sequence[_Weighed]) -> list[int]:
    return _last_of_turns([(end, turn) for _, end, _, turn, weight in weighed if weight > 0])


def _last_of_turns(trained: Iterable[tuple[int, int]]) -> list[int]:
    """Where the last of each turn's trained tokens ends: of (token behind, turn or -1 for none) pairs, in order."""
    ends: list[int] = []
    previous = -1
    for end, turn in trained:
        if turn >= 0:
            if turn == previous:
                ends.pop()
            ends.append(end)
            previous = turn
    return ends
