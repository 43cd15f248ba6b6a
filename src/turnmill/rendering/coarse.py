"""Spans of whole turns, for a template whose tracked render is not its plain one: the rungs below tracked strings.

A turn's text is known from outside: by the `generation` tags that the template itself writes around it, or as what the
render has more than the prompt before it. Who wrote what inside a turn is not known, so its text is all one kind, and
content that holds a control token cannot be escaped. Nothing is searched for in a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from turnmill.conversation import Conversation, Json
from turnmill.errors import Rejected
from turnmill.rendered import Kind
from turnmill.rendering.environment import Generated
from turnmill.rendering.form import Entry, Form, Written, write
from turnmill.rendering.segments import Segment

if TYPE_CHECKING:
    from turnmill.rendering.template import Template

Rung = Literal["tracked", "generation-tags", "differences"]
"""How spans are found; the first that a template allows."""

KINDS: dict[str, Kind] = {"user": "user", "system": "system", "developer": "system", "tool": "result"}


class Region(msgspec.Struct, frozen=True):
    """Characters [start, end) of one entry, its header not among them."""

    entry: int
    start: int
    end: int


def coarse_segments(
    template: Template,
    rung: Rung,
    stops: Sequence[str],
    conversation: Conversation,
    form: Form,
    kwargs: Mapping[str, Json],
) -> tuple[str, list[Segment], Written]:
    """The plain text, its segments by whole turns, and what was rendered.

    Raises:
        Rejected: `spans-unknown`, or what the template says to the row.
    """
    written = write(conversation, form, None, Counter())
    pieces = list(template.plain_pieces(written, kwargs))
    text = "".join(pieces)
    _check_weights(conversation, written.entries)
    if rung == "generation-tags":
        regions = _tagged(pieces, written.entries)
    else:
        regions = _Differences(template, conversation, form, kwargs, text).regions(written.entries)
    return text, _segments(text, regions, written.entries, stops, by_turn=rung == "generation-tags"), written


def _check_weights(conversation: Conversation, entries: Sequence[Entry]) -> None:
    for entry in entries:
        if len({conversation.messages[index].weight for index in entry.messages}) > 1:
            raise Rejected(
                "spans-unknown",
                "a turn of several messages of different weights: the template does not tell them apart",
                at=entry.recorded,
            )


def _tagged(pieces: Sequence[str], entries: Sequence[Entry]) -> list[Region]:
    """What the template's `generation` tags hold, a turn each."""
    turns = [number for number, entry in enumerate(entries) if entry.role == "assistant"]
    regions: list[Region] = []
    position = 0
    for piece in pieces:
        if isinstance(piece, Generated):
            entry = turns[len(regions)] if len(regions) < len(turns) else -1
            regions.append(Region(entry, position, position + len(piece)))
        position += len(piece)
    if len(regions) != len(turns):
        raise Rejected("spans-unknown", f"{len(turns)} turns, but {len(regions)} generation tags that show in the text")
    return regions


class _Differences:
    """What each entry adds to the render of the messages before it; of a turn, to the prompt before it."""

    def __init__(
        self, template: Template, conversation: Conversation, form: Form, kwargs: Mapping[str, Json], text: str
    ) -> None:
        self._template, self._conversation, self._form, self._kwargs = template, conversation, form, kwargs
        self._text = text

    def regions(self, entries: Sequence[Entry]) -> list[Region]:
        """The region of each entry, in order."""
        regions: list[Region] = []
        end = 0
        for number, entry in enumerate(entries):
            start = end
            if entry.role == "assistant":
                start = self._length(entry.messages[0], entry, prompt=True)
            is_last = number == len(entries) - 1
            end = len(self._text) if is_last else self._length(entry.messages[-1] + 1, entry, prompt=False)
            regions.append(Region(number, start, max(start, end)))
        return regions

    def _length(self, messages: int, entry: Entry, *, prompt: bool) -> int:
        """Characters of the render of the first messages, which must be the beginning of the whole."""
        before = self._conversation.beginning(messages)
        shown = self._template.plain(before, self._form, self._kwargs, prompt=prompt)
        if not self._text.startswith(shown):
            raise Rejected(
                "spans-unknown",
                "the template writes the messages up to here otherwise when more follow",
                at=entry.recorded,
            )
        return len(shown)


def _segments(
    text: str, regions: Sequence[Region], entries: Sequence[Entry], stops: Sequence[str], *, by_turn: bool
) -> list[Segment]:
    """The regions as fields, and the template's text around them: a header before a turn, a stop at its end."""
    segments: list[Segment] = []
    end = 0
    for region in regions:
        entry = entries[region.entry]
        if end < region.start:
            segments.append(Segment(end, region.start, -1 if by_turn else region.entry, -1, None, -1))
        inner = region.end
        if entry.role == "assistant":
            inner = region.start + _before_stop(text[region.start : region.end], stops)
        kind: Kind = KINDS.get(entry.role) or ("call" if len(entry.calls) == len(entry.messages) else "answer")
        if region.start < inner:
            segments.append(Segment(region.start, inner, region.entry, -1, kind, entry.messages[-1]))
        if inner < region.end:
            segments.append(Segment(inner, region.end, region.entry, -1, None, -1))
        end = region.end
    if end < len(text):
        segments.append(Segment(end, len(text), -1, -1, None, -1))
    return segments


def _before_stop(text: str, stops: Sequence[str]) -> int:
    """Where the stop that a turn's text ends with begins, white space behind it apart; else where the text ends."""
    shown = text.rstrip()
    stop = next((stop for stop in stops if shown.endswith(stop)), "")
    return len(shown) - len(stop) if stop else len(text)
