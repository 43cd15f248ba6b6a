"""Examples to length: cut behind a whole trained turn, or dropped with their length."""

from __future__ import annotations

from collections import Counter

import msgspec

from turnmill.errors import Rejected
from turnmill.options import Fit
from turnmill.rendered import Example, Run

MAX_TIMES_TOO_LONG = 16
"""A conversation over so many times the limit is a log or a book, not a chat: it is rejected, not cut."""


def fit(example: Example, options: Fit, max_tokens: int, *, only_last: bool, counts: Counter[str]) -> Example:
    """The example, at most `max_tokens` long, ending with a trained turn's stop.

    Args:
        example: with at least one trained turn.
        options: the `fit` section.
        max_tokens: the limit in tokens.
        only_last: `loss.turns: last`: a cut would take the only turn that trains.
        counts: `fit/<what>` → how often.

    Raises:
        Rejected: `far-too-long`, `too-long` or `first-turn-too-long`, with the length.
    """
    length = len(example.input_ids)
    if length > MAX_TIMES_TOO_LONG * max_tokens:
        raise Rejected(
            "far-too-long", f"{length:,} tokens, over {MAX_TIMES_TOO_LONG} times the limit of {max_tokens:,}"
        )
    last = example.turn_ends[-1] if example.turn_ends else length
    if last <= max_tokens:
        counts["fit/tail-tokens-dropped"] += length - last
        return cut_at(example, last)
    if options.overflow == "drop" or only_last:
        raise Rejected("too-long", f"{length:,} tokens, over the limit of {max_tokens:,}")
    ends = [end for end in example.turn_ends if end <= max_tokens]
    if not ends:
        first = example.turn_ends[0]
        raise Rejected(
            "first-turn-too-long", f"the first trained turn ends at token {first:,}, over the limit of {max_tokens:,}"
        )
    counts["fit/cut"] += 1
    counts["fit/turns-cut"] += len(example.turn_ends) - len(ends)
    counts["fit/tokens-cut"] += length - ends[-1]
    return cut_at(example, ends[-1])


def cut_at(example: Example, end: int) -> Example:
    """The first `end` tokens."""
    if end == len(example.input_ids):
        return example
    runs: list[Run] = []
    for run in example.runs:
        runs.append(msgspec.structs.replace(run, end=min(run.end, end)))
        if run.end >= end:
            break
    return msgspec.structs.replace(
        example,
        input_ids=example.input_ids[:end],
        runs=runs,
        turn_ends=[turn_end for turn_end in example.turn_ends if turn_end <= end],
    )
