"""What of a turn the generation prompt before it already holds: the model is given it, and does not learn it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from turnmill.rendered import TRAINED_KINDS, Kind
from turnmill.rendering.segments import Segment

Part = tuple[int, int, int, Kind]
"""(start, end, index in `Conversation.messages` or -1, kind)."""

OWN_KINDS: frozenset[Kind] = TRAINED_KINDS - {"stop"}
"""Text of the model's own."""


class Opening(NamedTuple):
    """The literal that an entry's text begins with, and where."""

    start: int
    literal: str


def openings_of(text: str, segments: Iterable[Segment]) -> dict[int, Opening]:
    """The opening of each entry that reached the text."""
    openings: dict[int, Opening] = {}
    closed: set[int] = set()
    for segment in segments:
        if segment.entry in closed:
            continue
        start, literal = openings.get(segment.entry, Opening(segment.start, ""))
        if segment.is_literal:
            literal += text[segment.start : segment.end]
        else:
            closed.add(segment.entry)
        openings[segment.entry] = Opening(start, literal)
    return openings


def prompt_end(opening: Opening | None, start: int | None, prompt: str) -> int:
    """Where a turn's generation prompt ends: behind the part of its opening that the prompt already holds.

    Where the two go on differently behind the header, letters that they share (`<t` of `<think>` and `<tool_call>`)
    are no part that the prompt holds.

    Args:
        opening: of the turn; None where it has not reached the text.
        start: where its header ends.
        prompt: the generation prompt before it.
    """
    if opening is None or start is None:
        return 0
    shared = min(len(opening.literal), len(prompt))
    if opening.literal[:shared] != prompt[:shared]:
        return start
    return max(start, opening.start + shared)


def without_prompts(text: str, parts: Sequence[Part], starts: Mapping[int, int], ends: Mapping[int, int]) -> list[Part]:
    """The parts, what generation prompts hold being scaffold; a tag that opens reasoning stays the reasoning's.

    White space between a scaffold that the prompt holds and the turn's own text is the model's to write: it is no
    scaffold.

    Args:
        text: the whole.
        parts: covering the text, in order.
        starts: where each turn's header ends, by entry.
        ends: where its generation prompt ends, by entry.
    """
    supplied = {starts[entry]: end for entry, end in ends.items() if entry in starts and starts[entry] < end}
    if not supplied:
        return list(parts)
    split: list[Part] = []
    limit = 0
    for start, end, message, kind in _handed_over(text, parts, supplied):
        limit = max(limit, supplied.get(start, 0))
        if kind == "reasoning" and start in supplied:
            limit = 0
        cut = min(max(start, limit), end)
        if kind in TRAINED_KINDS and start < cut:
            split.append((start, cut, message, "scaffold"))
            start = cut
        if start < end:
            split.append((start, end, message, kind))
    return split


def _handed_over(text: str, parts: Sequence[Part], supplied: Mapping[int, int]) -> Iterator[Part]:
    """The parts, the white space that ends a scaffold behind its prompt's end being that of the part that follows."""
    waiting: int | None = None
    for (start, end, message, kind), following in zip(parts, [*parts[1:], None], strict=True):
        begin = start if waiting is None else waiting
        waiting = None
        prompt_end = supplied.get(start, end) if kind == "scaffold" else end
        if prompt_end < end and following and following[3] in OWN_KINDS and text[prompt_end:end].isspace():
            waiting = end = prompt_end
        yield begin, end, message, kind
