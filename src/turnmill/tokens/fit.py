"""Examples to length: cut behind a whole trained turn, continued in further parts, or dropped with their length."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec

from turnmill.errors import Rejected
from turnmill.options import Fit
from turnmill.rendered import Example, Run

MAX_TIMES_TOO_LONG = 16
"""A conversation over so many times the limit is a log or a book, not a chat: it is rejected, not cut."""


class Stretch(NamedTuple):
    """Tokens [start, end) of the whole example that a part holds."""

    start: int
    end: int
    is_context: bool = False
    """Shown, not trained."""


class Part(NamedTuple):
    """What is trained on, and which tokens of the whole it holds."""

    example: Example
    stretches: tuple[Stretch, ...]


def fit(example: Example, options: Fit, max_tokens: int, *, only_last: bool, counts: Counter[str]) -> list[Part]:
    """The example as parts of at most `max_tokens` tokens, each ending with a trained turn's stop.

    A whole example ends with its last trained token, which may be a tool result's (`loss.observations`).

    Args:
        example: with at least one trained token.
        options: the `fit` section.
        max_tokens: the limit in tokens.
        only_last: `loss.turns: last`: a cut would take the only turn that trains.
        counts: `fit/<what>` → how often.

    Returns:
        One part, or several under `overflow: continue`.

    Raises:
        Rejected: `far-too-long`, `too-long` or `first-turn-too-long`, with the length.
    """
    length = len(example.input_ids)
    if length > MAX_TIMES_TOO_LONG * max_tokens:
        raise Rejected(
            "far-too-long", f"{length:,} tokens, over {MAX_TIMES_TOO_LONG} times the limit of {max_tokens:,}"
        )
    last = _trained_end(example)
    if last <= max_tokens:
        counts["fit/tail-tokens-dropped"] += length - last
        return [part_of(example, 0, (Stretch(0, last),))]
    if options.overflow == "drop" or only_last or not example.turn_ends:
        raise Rejected("too-long", f"{length:,} tokens, over the limit of {max_tokens:,}")
    end = max((end for end in example.turn_ends if end <= max_tokens), default=0)
    if not end:
        first = example.turn_ends[0]
        raise Rejected(
            "first-turn-too-long", f"the first trained turn ends at token {first:,}, over the limit of {max_tokens:,}"
        )
    parts = [part_of(example, 0, (Stretch(0, end),))]
    if options.overflow == "continue":
        for number, stretches in enumerate(_continued(example, end, max_tokens, counts), 1):
            parts.append(part_of(example, number, stretches))
        counts["fit/parts-added"] += len(parts) - 1
        return parts
    counts["fit/cut"] += 1
    counts["fit/turns-cut"] += sum(turn_end > end for turn_end in example.turn_ends)
    counts["fit/tokens-cut"] += length - end
    return parts


def chunks(example: Example, max_tokens: int, counts: Counter[str]) -> list[Part]:
    """A raw text as parts of at most `max_tokens` tokens: one after another, every token once.

    A last part of one token would train nothing (no token before it predicts it), so it takes one more.

    Args:
        example: the whole text.
        max_tokens: the limit in tokens.
        counts: `fit/<what>` → how often.
    """
    length = len(example.input_ids)
    edges = [*range(0, length, max_tokens), length]
    if len(edges) > 2 and edges[-1] - edges[-2] == 1 and max_tokens > 2:
        edges[-2] -= 1
    if len(edges) > 2:
        counts["fit/texts-chunked"] += 1
        counts["fit/parts-added"] += len(edges) - 2
    return [part_of(example, number, (Stretch(*edge),)) for number, edge in enumerate(pairwise(edges))]


def _trained_end(example: Example) -> int:
    """The token offset behind the last trained token."""
    return max(run.end for run in example.runs if run.weight > 0)


def _continued(example: Example, end: int, max_tokens: int, counts: Counter[str]) -> Iterator[tuple[Stretch, ...]]:
    """The stretches of each further part: context, then as many new turns as fit.

    A turn that fits in no part is left out and counted.
    """
    while end < example.turn_ends[-1]:
        following = [turn_end for turn_end in example.turn_ends if turn_end > end]
        for context, begin in _contexts(example, end, following[0]):
            room = max_tokens - sum(shown.end - shown.start for shown in context)
            last = max((turn_end for turn_end in following if turn_end - begin <= room), default=0)
            if last:
                yield (*context, Stretch(begin, last))
                end = last
                break
        else:
            counts["fit/turns-too-long"] += 1
            end = following[0]


def _contexts(example: Example, end: int, next_turn_end: int) -> Iterator[tuple[tuple[Stretch, ...], int]]:
    """What may be shown before new turns, and where those begin; the best first.

    What stands before the first user, always; and the exchange before the cut, or, where a user speaks next, nothing
    more, or, inside a long run of calls, the user's last message and the turn before the cut.
    """
    opening, users = _openings(example)
    exchange = max((user for user in users if user.start < end), default=Stretch(opening, opening))
    yield _shown(Stretch(0, opening), Stretch(exchange.start, end)), end
    fresh = next((user.start for user in users if end <= user.start < next_turn_end), None)
    if fresh is not None:
        yield _shown(Stretch(0, opening)), fresh
    else:
        turn = max(_turn_start(example, end), exchange.end)
        yield _shown(Stretch(0, opening), exchange, Stretch(turn, end)), end


def _shown(*stretches: Stretch) -> tuple[Stretch, ...]:
    return tuple(stretch._replace(is_context=True) for stretch in stretches if stretch.start < stretch.end)


def _turn_start(example: Example, end: int) -> int:
    """Where the turn that ends there opens: its header and its stop are of one message."""
    begin = 0
    starts: dict[int, int] = {}
    for run in example.runs:
        starts.setdefault(run.message, begin)
        if run.end >= end:
            return starts[run.message]
        begin = run.end
    return begin


def _openings(example: Example) -> tuple[int, list[Stretch]]:
    """The token at which the first user message begins (0 without one), and all user messages."""
    speakers = {run.message for run in example.runs if run.kind == "user"}
    users: list[Stretch] = []
    begin, previous = 0, None
    for run in example.runs:
        if run.message in speakers:
            is_new = run.message != previous
            users.append(Stretch(begin, run.end) if is_new else users.pop()._replace(end=run.end))
        previous, begin = run.message, run.end
    return (users[0].start if users else 0), users


def part_of(example: Example, part: int, stretches: tuple[Stretch, ...]) -> Part:
    """The tokens of the stretches, one after another."""
    if stretches == (Stretch(0, len(example.input_ids)),):
        return Part(example, stretches)
    if len(stretches) == 1 and stretches[0].start == 0 and not stretches[0].is_context:
        return Part(_shortened(example, part, stretches[0].end), stretches)
    length = 0
    runs: list[Run] = []
    turn_ends: list[int] = []
    for stretch in stretches:
        shift = length - stretch.start
        length += stretch.end - stretch.start
        runs += _runs_within(example.runs, stretch, shift)
        if not stretch.is_context:
            turn_ends += [end + shift for end in example.turn_ends if stretch.start < end <= stretch.end]
    ids = [token for start, end, _ in stretches for token in example.input_ids[start:end]]
    made = msgspec.structs.replace(example, part=part, input_ids=ids, runs=runs, turn_ends=turn_ends)
    return Part(made, stretches)


def _shortened(example: Example, part: int, end: int) -> Example:
    """The example's first tokens."""
    whole = bisect_right(example.runs, end, key=lambda run: run.end)
    runs = example.runs[:whole]
    if whole < len(example.runs) and (runs[-1].end if runs else 0) < end:
        cut = example.runs[whole]
        runs.append(Run(end, cut.message, cut.kind, cut.weight))
    turn_ends = [turn_end for turn_end in example.turn_ends if turn_end <= end]
    return msgspec.structs.replace(
        example, part=part, input_ids=example.input_ids[:end], runs=runs, turn_ends=turn_ends
    )


def _runs_within(runs: list[Run], stretch: Stretch, shift: int) -> Iterator[Run]:
    """The runs of a stretch, at their new places; those of context weigh nothing."""
    begin = 0
    for run in runs:
        if begin < stretch.end and run.end > stretch.start:
            weight = 0.0 if stretch.is_context else run.weight
            yield Run(min(run.end, stretch.end) + shift, run.message, run.kind, weight)
        begin = run.end
