"""From segments to spans: what of each turn is header, scaffold, reasoning, answer, call and stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from turnmill.conversation import Conversation
from turnmill.errors import Rejected
from turnmill.rendered import Kind, Span
from turnmill.rendering.form import Entry
from turnmill.rendering.markers import Markers, first_of, last_of
from turnmill.rendering.segments import Segment

_Part = tuple[int, int, int, Kind]
"""(start, end, index in `Conversation.messages` or -1, kind)."""


class Attribution:
    """The spans of one render.

    Attributes:
        parts: disjoint, ordered, covering.
        starts: character where each turn's own text begins, by entry: its header ends there.
        stops: how many stops each turn has, by entry.
        foreign_stops: how often a turn ends with a control token that is no stop, by entry.
    """

    def __init__(
        self, text: str, segments: Sequence[Segment], entries: Sequence[Entry], markers: Markers, counts: Counter[str]
    ) -> None:
        self._text, self._segments, self._entries = text, segments, entries
        self._markers = markers
        self.starts: dict[int, int] = {}
        self.stops: Counter[int] = Counter()
        self.foreign_stops: Counter[int] = Counter()
        self._claimed: dict[int, Kind] = {}
        self.parts: list[_Part] = []
        self._walk()
        if self.foreign_stops:
            counts["tokenize/stop-not-eos"] += self.foreign_stops.total()

    def _walk(self) -> None:
        """Turn by turn; a stop that stands in the literal after the turn takes characters of a later segment."""
        borrowed: tuple[int, int, int] | None = None
        position = 0
        while position < len(self._segments):
            end = self._range_end(position)
            segment = self._segments[position]
            if segment.entry >= 0 and self._entries[segment.entry].role == "assistant":
                new = self._turn(position, end)
            else:
                new = [self._other(part) for part in self._segments[position:end]]
            if borrowed is not None:
                new = _give(new, borrowed)
                borrowed = None
            if new and new[-1][3] == "stop" and new[-1][1] > self._segments[end - 1].end:
                start, stop_end, message, _ = new.pop()
                borrowed = (start, stop_end, message)
            self.parts += new
            position = end

    def _range_end(self, position: int) -> int:
        """End of the run of segments of one entry."""
        entry = self._segments[position].entry
        end = position + 1
        while end < len(self._segments) and self._segments[end].entry == entry:
            end += 1
        return end

    def _other(self, segment: Segment) -> _Part:
        if segment.kind is not None:
            return segment.start, segment.end, segment.message, segment.kind
        message = self._entries[segment.entry].messages[-1] if segment.entry >= 0 else -1
        return segment.start, segment.end, message, "frame"

    def _turn(self, low: int, high: int) -> list[_Part]:
        """One stretch of a turn: header, scaffold, the model's own text, stop, and what follows the stop."""
        segments = self._segments[low:high]
        last = self._entries[segments[0].entry].messages[-1]
        fields = [index for index, segment in enumerate(segments) if not segment.is_literal]
        if not fields:
            return self._bare(segments, last)
        parts = self._opening(segments[: fields[0]], segments[fields[0] :], last)
        for index in range(fields[0], fields[-1] + 1):
            parts += self._inner(segments, index)
        before = segments[fields[-1]]
        return parts + self._closing(segments[fields[-1] + 1 :], high, before, last)

    def _bare(self, segments: Sequence[Segment], last: int) -> list[_Part]:
        """A stretch of template text alone: an empty turn, or what closes one behind results shown inside it."""
        entry = segments[0].entry
        if entry not in self.starts or self.stops[entry]:
            return [self._other(segment) for segment in segments]
        start, end = segments[0].start, segments[-1].end
        found = first_of(self._text[start:end], self._markers.stops)
        if found is None:
            return [self._other(segment) for segment in segments]
        self.stops[entry] += 1
        parts: list[_Part] = [
            (start, start + found[0], last, "frame"),
            (start + found[0], start + found[1], last, "stop"),
            (start + found[1], end, last, "frame"),
        ]
        return [part for part in parts if part[0] < part[1]]

    def _opening(self, literals: Sequence[Segment], rest: Sequence[Segment], last: int) -> list[_Part]:
        """The leading literal: header, then an empty scaffold, then what the model writes before its first field."""
        entry, first = rest[0].entry, rest[0]
        if not literals:
            self.starts.setdefault(entry, first.start)
            return []
        start, end = literals[0].start, literals[-1].end
        literal = self._text[start:end]
        role_before = "tool" if entry in self.starts else self._role_before(entry)
        header = start + self._markers.header_length(literal, role_before)
        self.starts.setdefault(entry, header)
        scaffold = header
        if not any(segment.kind == "reasoning" for segment in rest):
            scaffold = self._scaffold_end(literal, header - start) + start
        parts: list[_Part] = [(start, header, last, "frame"), (header, scaffold, last, "scaffold")]
        kind: Kind = first.kind or "answer"
        parts.append((scaffold, end, first.message, kind))
        return [part for part in parts if part[0] < part[1]]

    def _role_before(self, entry: int) -> str:
        return self._entries[entry - 1].role if entry > 0 else "user"

    def _scaffold_end(self, literal: str, header: int) -> int:
        """End of an empty think block, and of the white space behind it, in a leading literal."""
        closer = self._markers.think_close
        found = literal.find(closer, header) if closer else -1
        if found < 0 or closer is None:
            return header
        end = found + len(closer)
        return end + len(literal[end:]) - len(literal[end:].lstrip())

    def _inner(self, segments: Sequence[Segment], index: int) -> list[_Part]:
        """A field, or the literal between two fields of a turn."""
        segment = segments[index]
        if segment.kind is not None:
            return [(segment.start, segment.end, segment.message, segment.kind)]
        before = next(part for part in reversed(segments[:index]) if not part.is_literal)
        after = next(part for part in segments[index:] if not part.is_literal)
        if segment.call >= 0:
            owner = next((part for part in segments if part.call == segment.call and part.kind == "call"), before)
            return [(segment.start, segment.end, owner.message, "call")]
        if before.kind == "reasoning" and after.kind != "reasoning":
            cut = segment.start + self._reasoning_end(self._text[segment.start : segment.end])
            parts: list[_Part] = [
                (segment.start, cut, before.message, "reasoning"),
                (cut, segment.end, after.message, after.kind or "answer"),
            ]
            return [part for part in parts if part[0] < part[1]]
        owner = after if after.kind == "call" else before
        return [(segment.start, segment.end, owner.message, owner.kind or "answer")]

    def _reasoning_end(self, literal: str) -> int:
        """How much of the literal behind reasoning closes it: its closer and the white space after."""
        closer = self._markers.think_close
        found = literal.find(closer) if closer else -1
        if found < 0 or closer is None:
            return len(literal)
        end = found + len(closer)
        return end + len(literal[end:]) - len(literal[end:].lstrip())

    def _closing(self, literals: Sequence[Segment], high: int, before: Segment, last: int) -> list[_Part]:
        """The trailing literal: up to its stop the model writes it; behind the stop it is the template's."""
        start = before.end
        end = literals[-1].end if literals else start
        kind: Kind = before.kind or "answer"
        own = self._text[start:end]
        found = first_of(own, self._markers.stops)
        if found is None and (after := self._stop_after(high)) is not None:
            self.stops[before.entry] += 1
            parts: list[_Part] = [(start, end, before.message, kind), (after[0], after[1], last, "stop")]
            return [part for part in parts if part[0] < part[1]]
        if found is None and (found := last_of(own, self._markers.control)) is not None:
            self.foreign_stops[before.entry] += 1
        if found is None:
            tail = len(own.rstrip())
            parts = [(start, start + tail, before.message, kind), (start + tail, end, last, "frame")]
            return [part for part in parts if part[0] < part[1]]
        self.stops[before.entry] += 1
        low, stop_end = start + found[0], start + found[1]
        parts = [
            (start, low, before.message, kind),
            (low, stop_end, last, "stop"),
            (stop_end, end, last, "frame"),
        ]
        return [part for part in parts if part[0] < part[1]]

    def _stop_after(self, high: int) -> tuple[int, int] | None:
        """A stop at the very start of the literal behind the turn, where the template does not close turns itself."""
        if high >= len(self._segments) or not self._segments[high].is_literal:
            return None
        segment = self._segments[high]
        text = self._text[segment.start : segment.end]
        for stop in self._markers.stops:
            if text.startswith(stop):
                return segment.start, segment.start + len(stop)
        return None


def _give(parts: list[_Part], borrowed: tuple[int, int, int]) -> list[_Part]:
    """The characters of a borrowed stop go to the turn before."""
    start, end, message = borrowed
    first = parts[0]
    stop: _Part = (start, end, message, "stop")
    return [stop, *([(end, *first[1:])] if end < first[1] else []), *parts[1:]]


def spans_of(conversation: Conversation, parts: Sequence[_Part]) -> tuple[Span, ...]:
    """The parts as spans: recorded message numbers, neighbours of one message and kind merged."""
    spans: list[Span] = []
    for start, end, message, kind in parts:
        recorded = conversation.messages[message].recorded if message >= 0 else -1
        if spans and (spans[-1].message, spans[-1].kind) == (recorded, kind):
            spans[-1] = Span(spans[-1].start, end, recorded, kind)
        else:
            spans.append(Span(start, end, recorded, kind))
    return tuple(spans)


def check_order(segments: Sequence[Segment], entries: Sequence[Entry]) -> None:
    """The invariant of a row: no message stands inside another's text, and users and turns keep their order.

    Raises:
        Rejected: `turns-overlap`, or `turn-not-representable`.
    """
    fields = [segment for segment in segments if segment.kind is not None and segment.entry >= 0]
    turns = [segment for segment in fields if entries[segment.entry].role in ("user", "assistant")]
    for one, other in pairwise(turns):
        if other.entry < one.entry:
            late, early = entries[other.entry].recorded, entries[one.entry].recorded
            raise Rejected("turns-overlap", f"the template writes message {late} behind message {early}", at=late)
    _check_texts_before_results(fields, entries)
    for one, between, other in zip(fields, fields[1:], fields[2:], strict=False):
        if one.entry == other.entry != between.entry and entries[between.entry].role != "tool":
            raise Rejected(
                "turns-overlap",
                f"the template writes message {entries[between.entry].recorded} inside another message",
                at=entries[one.entry].recorded,
            )


def _check_texts_before_results(fields: Sequence[Segment], entries: Sequence[Entry]) -> None:
    """No text of a turn stands behind the results of its calls: the model would learn to write it knowing them."""
    latest = -1
    for segment in fields:
        is_turn = entries[segment.entry].role == "assistant"
        if is_turn and segment.entry < latest and segment.kind != "call":
            raise Rejected(
                "turn-not-representable",
                f"the template writes the text of message {entries[segment.entry].recorded} behind message "
                f"{entries[latest].recorded}",
                at=entries[segment.entry].recorded,
            )
        latest = max(latest, segment.entry)
