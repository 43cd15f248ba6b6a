"""Examples to length: cut behind a whole trained turn, continued in further parts, or dropped with their length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
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


def _trained_end(example: Example) -> int:
    """The token offset behind the last trained token."""
    return max(run.end for run in example.runs if run.weight > 0)


def _continued(example: Example, end: int, max_tokens: int, counts: Counter[str]) -> Iterator[tuple[Stretch, ...]]:
    """The stretches of each further part: what stands before the first user, the exchange before the cut, new turns.

    Where that exchange leaves no room and a user speaks next, it is left out; a turn that fits in no part is left out
    and counted.
    """
    opening, users = _openings(example)
    while end < example.turn_ends[-1]:
        following = [turn_end for turn_end in example.turn_ends if turn_end > end]
        fresh = next((start for start in users if end <= start < following[0]), None)
        exchange = max((start for start in users if start < end), default=None)
        for begin in (exchange, fresh):
            if begin is None:
                continue
            room = begin + max_tokens - opening
            last = max((turn_end for turn_end in following if turn_end <= room), default=0)
            if last:
                shown = Stretch(begin, max(begin, end), is_context=True)
                stretches = (Stretch(0, opening, is_context=True), shown, Stretch(shown.end, last))
                yield tuple(stretch for stretch in stretches if stretch.start < stretch.end)
                end = last
                break
        else:
            counts["fit/turns-too-long"] += 1
            end = following[0]


def _openings(example: Example) -> tuple[int, list[int]]:
    """The token at which the first user message begins, and those of all user messages."""
    speakers = {run.message for run in example.runs if run.kind == "user"}
    starts: list[int] = []
    begin, previous = 0, None
    for run in example.runs:
        if run.message in speakers and run.message != previous:
            starts.append(begin)
        previous, begin = run.message, run.end
    return (starts[0] if starts else 0), starts


def part_of(example: Example, part: int, stretches: tuple[Stretch, ...]) -> Part:
    """The tokens of the stretches, one after another."""
    if stretches == (Stretch(0, len(example.input_ids)),):
        return Part(example, stretches)
    ids: list[int] = []
    runs: list[Run] = []
    turn_ends: list[int] = []
    for stretch in stretches:
        shift = len(ids) - stretch.start
        ids += example.input_ids[stretch.start : stretch.end]
        runs += _runs_within(example.runs, stretch, shift)
        if not stretch.is_context:
            turn_ends += [end + shift for end in example.turn_ends if stretch.start < end <= stretch.end]
    made = msgspec.structs.replace(example, part=part, input_ids=ids, runs=runs, turn_ends=turn_ends)
    return Part(made, stretches)


def _runs_within(runs: list[Run], stretch: Stretch, shift: int) -> Iterator[Run]:
    """The runs of a stretch, at their new places; those of context weigh nothing."""
    begin = 0
    for run in runs:
        if begin < stretch.end and run.end > stretch.start:
            weight = 0.0 if stretch.is_context else run.weight
            yield Run(min(run.end, stretch.end) + shift, run.message, run.kind, weight)
        begin = run.end
