"""From the pieces a tracked render puts out to segments: who wrote which characters, before any rule is applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from turnmill.errors import Rejected, quote
from turnmill.rendered import Kind
from turnmill.rendering.form import Entry
from turnmill.rendering.trace import NOBODY, UNOWNED, Origin, Owner
from turnmill.rendering.tracked import MIXED, runs_of


class Segment(NamedTuple):
    """Characters [start, end) of one writer."""

    start: int
    end: int
    entry: int
    """Index of the entry they belong to, -1 for none."""
    call: int
    """Which of the entry's calls, -1 for none."""
    kind: Kind | None
    """The field they are from; None for template text."""
    message: int
    """Index in `Conversation.messages` for a field, -1 for template text and tools."""

    @property
    def is_literal(self) -> bool:
        """Whether the template wrote it."""
        return self.kind is None


_Whose = tuple[int, int, Kind | None, int]
"""Entry, call, kind and message of a segment."""


class Emitted(NamedTuple):
    """One piece of output, and who was being rendered when it came."""

    text: str
    emitter: Owner


class Stretch(NamedTuple):
    """So many characters of one origin, and who was being rendered when they came."""

    length: int
    origin: Origin
    emitter: Owner


def segments_of(pieces: Iterable[Emitted], origins: Sequence[Origin], entries: Sequence[Entry]) -> list[Segment]:
    """The segments of the joined pieces of a tracked render.

    Raises:
        Rejected: as `joined_segments` does; or `writers-mixed`, a piece was made of several messages' texts in a way
            that hides who wrote which part.
    """
    return joined_segments(_stretches(pieces, origins), entries)


def _stretches(pieces: Iterable[Emitted], origins: Sequence[Origin]) -> Iterator[Stretch]:
    for text, emitter in pieces:
        for length, number in runs_of(text):
            if number == MIXED:
                raise Rejected(
                    "writers-mixed",
                    f"the template makes one text of several messages, and who wrote which part is lost: {quote(text)}",
                )
            yield Stretch(length, origins[number], emitter)


def joined_segments(stretches: Iterable[Stretch], entries: Sequence[Entry]) -> list[Segment]:
    """Covering, ordered segments of a text; neighbours of one writer are merged.

    A literal without an owner belongs to the message that was being rendered. A turn's field that is shown while
    another message is rendered (a call's name, printed again with its result) is a quotation: template text of that
    message. Where the text was collected first and is put out at the end, the message rendered is that of the literal
    before. A turn that is put out outside of any loop over messages has the literals around it.

    Raises:
        Rejected: `turns-overlap`, a message's text stands in another message's turn.
    """
    ends: list[int] = []
    writers: list[_Whose] = []
    outside: list[bool] = []
    position = 0
    latest = UNOWNED
    for length, origin, emitter in stretches:
        if origin.kind is None:
            latest = max(latest, origin.owner)
        is_late = emitter == UNOWNED and origin.kind is not None and origin.owner < latest
        writer = _whose(origin, latest if is_late else emitter, entries)
        position += length
        if writers and writers[-1] == writer:
            ends[-1] = position
        else:
            ends.append(position)
            writers.append(writer)
            outside.append(emitter == UNOWNED or emitter.call >= 0)
    segments = [Segment(start, end, *writer) for start, end, writer in zip([0, *ends], ends, writers, strict=False)]
    return _adopted(segments, outside, entries)


def _adopted(segments: list[Segment], outside: Sequence[bool], entries: Sequence[Entry]) -> list[Segment]:
    """The segments; literals of nobody beside a turn that no loop over messages puts out are the turn's.

    Args:
        segments: in order.
        outside: of each, whether it came from outside of such a loop, or from a loop over calls.
        entries: what the messages were written as.
    """
    adopted = list(segments)
    for low, segment in enumerate(segments):
        if not (outside[low] and segment.entry == NOBODY and segment.is_literal):
            continue
        beside = [adopted[number] for number in (low - 1, low + 1) if 0 <= number < len(segments) and outside[number]]
        owners = {one.entry for one in beside if one.entry >= 0}
        if len(owners) == 1 and _is_turn(beside[-1] if beside[-1].entry >= 0 else beside[0], entries):
            adopted[low] = segment._replace(entry=owners.pop())
    return adopted


def _is_turn(segment: Segment, entries: Sequence[Entry]) -> bool:
    return entries[segment.entry].role == "assistant"


def _whose(origin: Origin, emitter: Owner, entries: Sequence[Entry]) -> _Whose:
    entry, call = origin.owner
    if origin.kind is None:
        owner = emitter if entry == NOBODY else origin.owner
        return owner.entry, owner.call, None, -1
    is_foreign = entry not in (NOBODY, emitter.entry) and emitter.entry != NOBODY
    if is_foreign and entries[emitter.entry].role == "assistant" and entries[entry].role != "tool":
        raise Rejected(
            "turns-overlap",
            f"the template writes message {entries[entry].recorded} while it renders a turn of the assistant",
            at=entries[emitter.entry].recorded,
        )
    if is_foreign and entries[entry].role == "assistant":
        return emitter.entry, emitter.call, None, -1
    return entry, call, origin.kind, origin.message
