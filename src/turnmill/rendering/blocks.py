"""The spans of a row that is put together of passages, put together of what is known of each.

A *block* is what one passage says. Where each message stands in a block of its own, in order, whose each part of a
block is hangs on its passage, on the passages beside it and on the role before: a turn's header, scaffold and end are
found in its own text, but for a stop that stands at the head of the next. So the spans of a block, as places among its
pieces, are learned of one row, by the rules of whole rows, and hold for every other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import lt
from typing import NamedTuple

from turnmill.conversation import Conversation, Message
from turnmill.rendered import Kind, Rendered, Span
from turnmill.rendering.form import Entry, function_name
from turnmill.rendering.passage_recording import Piece
from turnmill.rendering.prompts import Part

HEAD = -1
"""The entry of a block that is of no message: what stands before the first."""
NOBODY, BEFORE = -1, -2
"""In place of an index in an entry's messages: no message, and the last one of the block before."""
TWICE = -1
"""In place of a piece: there are several."""

Place = tuple[int, int]
"""A piece of a block, and how many characters into it."""
Beside = tuple[object, object, str]
"""The layouts before and behind, None for none, and the role before."""


class Attributed(NamedTuple):
    """A row's render by the rules of whole rows."""

    rendered: Rendered
    parts: Sequence[Part]
    """With the messages they are of."""
    foreign_stops: Mapping[int, int]
    """Entry → how often it ends with a control token that is no stop."""


class Known(NamedTuple):
    """What holds for a block in every row in which the same stands beside it."""

    spans: list[tuple[int, int, int, Kind]]
    """Place where each ends, index in the entry's messages, `NOBODY` or `BEFORE`, and kind."""
    prompt_end: Place | None
    """Of a turn: where its generation prompt ends."""
    added_stop: str
    """What is put behind the last block, by a template that does not end its last turn."""
    foreign_stops: int


class Layout:
    """What is known of a passage's pieces, whatever they say.

    Args:
        pieces: of the passage.

    Attributes:
        size: how many pieces.
        contents: numbers of those that content wrote.
        said: index in the entry's messages → the piece that is its text.
        calls: which of the entry's calls → its pieces.
        known: by what stands beside a block of it.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        writers = [piece.writer for piece in pieces]
        self.size = len(pieces)
        self.is_literal = [isinstance(piece.text, str) for piece in pieces]
        self.contents = [number for number, writer in enumerate(writers) if writer.kind is not None]
        is_told = all(literal or one.kind is not None for literal, one in zip(self.is_literal, writers, strict=True))
        self.is_turn = is_told and all(one.emitter == "own" and _is_own(one.entry, one.kind) for one in writers)
        self.is_head = is_told and all(one.emitter == "nobody" and one.entry != "own" for one in writers)
        self.says_first = any(one.entry == "first" for one in writers)
        self.says_tools = any(one.kind == "tools" for one in writers)
        self.begins_in_call = bool(writers) and writers[0].emitter_call >= 0
        self.said: dict[int, int] = {}
        self.calls: dict[int, list[int]] = {}
        for number in self.contents:
            writer = writers[number]
            if writer.call >= 0:
                self.calls.setdefault(writer.call, []).append(number)
            elif writer.message >= 0:
                self.said[writer.message] = TWICE if writer.message in self.said else number
        self.known: dict[Beside, Known] = {}


def _is_own(entry: str, kind: Kind | None) -> bool:
    return entry == "own" or (entry == "nobody" and kind is None)


class Block(NamedTuple):
    """What a passage said of a row."""

    layout: Layout
    entry: int
    """Of the message at hand, `HEAD` for none."""
    first: int
    """Number of its first piece in the row."""


class Blocks:
    """The blocks of one row.

    Args:
        conversation: the row.
        entries: as the template is given it.
        blocks: those that say something, in order.
        texts: the pieces of all.
    """

    def __init__(
        self, conversation: Conversation, entries: Sequence[Entry], blocks: Sequence[Block], texts: Sequence[str]
    ) -> None:
        self._conversation, self._entries, self._blocks, self._texts = conversation, entries, blocks, texts
        self._starts = [0, *accumulate(map(len, texts))]

    def contents(self) -> list[tuple[int, int]]:
        """(start, end) of each piece that content wrote."""
        numbers = [block.first + number for block in self._blocks for number in block.layout.contents]
        return [(self._starts[number], self._starts[number + 1]) for number in numbers]

    def rendered(self, text: str, counts: Counter[str]) -> Rendered | None:
        """The row's render; None where the spans of a block are not known.

        Args:
            text: the row's.
            counts: takes what the rules of whole rows count.
        """
        known = [block.layout.known.get(beside) for block, beside in self._beside()]
        found = [one for one in known if one is not None]
        if len(found) < len(known) or not found or not self._is_in_order():
            return None
        ends = [
            self._starts[block.first + one.prompt_end[0]] + one.prompt_end[1]
            for block, one in zip(self._blocks, found, strict=True)
            if one.prompt_end is not None
        ]
        if found[-1].added_stop:
            counts["render/stop-added"] += 1
        if foreign := sum(one.foreign_stops for one in found):
            counts["tokenize/stop-not-eos"] += foreign
        return Rendered(text + found[-1].added_stop, self._spans(found), tuple(ends))

    def _beside(self) -> Iterator[tuple[Block, Beside]]:
        """Each block, and what else its spans hang on."""
        layouts = [None, *(block.layout for block in self._blocks), None]
        for number, block in enumerate(self._blocks):
            role = self._entries[block.entry - 1].role if block.entry > 0 else ""
            yield block, (layouts[number], layouts[number + 2], role)

    def _is_in_order(self) -> bool:
        """Whether messages stand in order and each turn in a block; that of the head is no turn, and in none."""
        heads = [block for block in self._blocks if block.entry == HEAD]
        turns = self._blocks[len(heads) :]
        numbers = [block.entry for block in self._blocks if block.entry != HEAD]
        if len(numbers) != len(turns) or not all(map(lt, numbers, numbers[1:])):
            return False
        is_first_said = any(block.layout.says_first for block in heads)
        if is_first_said and (self._entries[0].role == "assistant" or numbers[:1] == [0]):
            return False
        asked = [number for number, entry in enumerate(self._entries) if entry.role == "assistant"]
        return set(asked) <= set(numbers)

    def _stand_alone(self) -> bool:
        """Whether each block says one message alone, or is of the head, and none lies in a loop with its neighbour."""
        turns = [block for block in self._blocks if block.entry != HEAD]
        return (
            all(block.layout.is_head if block.entry == HEAD else block.layout.is_turn for block in self._blocks)
            and all(block.entry == HEAD for block in self._blocks[: len(self._blocks) - len(turns)])
            and not (turns and turns[0].layout.begins_in_call)
        )

    def _spans(self, known: Sequence[Known]) -> tuple[Span, ...]:
        """The spans of all blocks; one that says what the last one says is its end."""
        ends: list[int] = []
        says: list[tuple[int, Kind]] = []
        messages, starts = self._conversation.messages, self._starts
        last = NOBODY
        for block, one in zip(self._blocks, known, strict=True):
            members = self._entries[max(block.entry, 0)].messages
            for piece, into, index, kind in one.spans:
                number = last if index == BEFORE else members[index] if index >= 0 else NOBODY
                said = (messages[number].recorded if number >= 0 else NOBODY, kind)
                if says and says[-1] == said:
                    ends[-1] = starts[block.first + piece] + into
                else:
                    says.append(said)
                    ends.append(starts[block.first + piece] + into)
            last = members[-1]
        return tuple([Span(start, end, *said) for start, end, said in zip([0, *ends], ends, says, strict=False)])

    def learn(self, attributed: Attributed) -> None:
        """Remember what holds of each block."""
        if not self._is_in_order() or not self._stand_alone():
            return
        rendered, parts, foreign = attributed
        turns = [number for number, entry in enumerate(self._entries) if entry.role == "assistant"]
        prompt_ends = dict(zip(turns, rendered.prompt_ends, strict=False))
        added = rendered.text[self._starts[-1] :]
        before = self._blocks[0]
        for block, beside in self._beside():
            prompt_end = self._place(block, prompt_ends[block.entry]) if block.entry in prompt_ends else None
            stop = added if block is self._blocks[-1] else ""
            spans = self._spans_of(block, before, parts, len(stop))
            if spans is not None and (prompt_end is not None or not self._is_turn(block)):
                block.layout.known[beside] = Known(spans, prompt_end, stop, foreign.get(block.entry, 0))
            before = block

    def _spans_of(
        self, block: Block, before: Block, parts: Sequence[Part], added: int
    ) -> list[tuple[int, int, int, Kind]] | None:
        """A block's spans; None where one ends inside content, or is of another's message."""
        low, high = self._starts[block.first], self._starts[block.first + block.layout.size] + added
        members = self._entries[max(block.entry, 0)].messages
        borrowing = self._entries[max(before.entry, 0)].messages[-1] if before is not block else None
        found: list[tuple[int, int, int, Kind]] = []
        for start, end, message, kind in parts:
            if end <= low or start >= high:
                continue
            place = self._place(block, min(end, high))
            is_borrowed = message == borrowing and message not in members
            if place is None or (message >= 0 and message not in members and not is_borrowed):
                return None
            index = BEFORE if is_borrowed else members.index(message) if message >= 0 else NOBODY
            found.append((*place, index, kind))
        return found

    def _place(self, block: Block, character: int) -> Place | None:
        """A place in a block, or behind it; None where it lies before it or inside content."""
        size = block.layout.size
        starts = self._starts[block.first : block.first + size + 1]
        if character >= starts[-1]:
            return size, character - starts[-1]
        piece = bisect_right(starts, character) - 1
        into = character - starts[piece]
        return (piece, into) if piece >= 0 and (not into or block.layout.is_literal[piece]) else None

    def are_whole(self, counts: Counter[str]) -> bool:
        """Whether every message stands in its block once and as it is: then nothing need be looked for.

        Args:
            counts: takes what is left out by policy.
        """
        turns = [block.entry for block in self._blocks if self._is_turn(block)]
        left_out: Counter[str] = Counter()
        left = len(self._conversation.messages)
        for block in self._blocks:
            entry = self._entries[max(block.entry, 0)]
            if block.entry == HEAD and not block.layout.says_first:
                continue
            for index, number in enumerate(entry.messages):
                message = self._conversation.messages[number]
                if self._says(block, entry, index, message):
                    pass
                elif self._says(block, entry, index, message, trimmed=True):
                    left_out["render/trimmed"] += 1
                elif message.channel == "analysis" and index not in block.layout.said and block.entry < turns[-1]:
                    left_out["render/history-reasoning-stripped"] += 1
                else:
                    return False
                left -= 1
        if left or (self._conversation.tools and not any(block.layout.says_tools for block in self._blocks)):
            return False
        counts.update(left_out)
        return True

    def _is_turn(self, block: Block) -> bool:
        return block.entry >= 0 and self._entries[block.entry].role == "assistant"

    def _says(self, block: Block, entry: Entry, index: int, message: Message, *, trimmed: bool = False) -> bool:
        """Whether a message stands in its block as it is, or without white space at its edges."""
        if message.is_call:
            if trimmed:
                return False
            pieces = block.layout.calls.get(entry.calls.index(entry.messages[index]), ())
            said = [self._texts[block.first + piece] for piece in pieces]
            return message.text in said and function_name(message) in said
        piece = block.layout.said.get(index, TWICE)
        text = message.text.strip() if trimmed else message.text
        return piece != TWICE and self._texts[block.first + piece] == text
