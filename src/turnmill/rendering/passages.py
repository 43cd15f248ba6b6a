"""Renders put together of passages: what a template did with a message, done again with others like it.

Conversations of many turns are rarely of one shape, but made of the same few kinds of messages. A passage is a program
over the message at hand, its place and what namespaces hold; its guards say for which it holds. What else a template
could carry from one passage to the next hangs on the way it took outside of its loops: passages are kept behind the
passages outside of loops that came before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from turnmill.conversation import Conversation, Json
from turnmill.rendered import Rendered
from turnmill.rendering.blocks import Attributed, Block, Blocks, Layout
from turnmill.rendering.form import Entry, Form, Written, rank, write
from turnmill.rendering.limits import MAX_CHARACTERS
from turnmill.rendering.passage_recording import Recorded, Writer
from turnmill.rendering.segments import Segment, Stretch, joined_segments
from turnmill.rendering.steps import Refused, Run, compiled, run_steps, walked
from turnmill.rendering.template import Dialog, Template
from turnmill.rendering.trace import UNOWNED, Origin, Owner
from turnmill.rendering.walk import INPUTS

MAX_VARIANTS = 12
"""Passages of one kind of message at one point: contents and places that take different ways through the template."""
MAX_PLACED = 64
"""Messages for which a passage remembers whose its pieces are."""
COMPILED_AT = 20
"""Uses of a passage before its steps become a function: making that takes as long as so many walks over them."""
FREE_RECORDINGS = 12
ROWS_PER_RECORDING = 8
"""A recording costs as much as three renders: after the first ones, one for so many rows that passages have served."""
MAX_RECORDINGS = 256
MAX_REFUSALS = 3
"""Recordings that fail before any row is served: then none is tried any more."""

Finish = Callable[[Dialog], Attributed]
"""The spans of a dialog, by the rules of whole rows."""


class Passage:
    """What is done in one passage.

    Args:
        recorded: how it was done.

    Attributes:
        uses: how often it was done.
        own: of a passage outside of loops, by kind of message the turns of the loop behind it.
        then: what may lie behind that loop.
    """

    def __init__(self, recorded: Recorded) -> None:
        self.walk, self.breaks, self.uses = recorded.walk, recorded.breaks, 0
        self.own: dict[Hashable, list[Passage]] = {}
        self.then: list[Passage] = []
        self.layout = Layout(recorded.pieces)
        self._steps, self._changes = recorded.steps, recorded.changes
        self._compiled: Run | None = None
        self._texts = [piece.text for piece in recorded.pieces]
        self._writers = [piece.writer for piece in recorded.pieces]
        self._placed: dict[tuple[int, int], list[tuple[Origin, Owner]]] = {}

    def run(self, inputs: Sequence[Any], number: int, said: Said) -> bool:
        """Say it of the message at hand; False where a guard does not hold.

        Args:
            inputs: the registers before the first step.
            number: of the entry at hand, -1 for none.
            said: what is said so far.
        """
        registers = self._registers(inputs)
        if registers is None:
            return False
        if self._texts:
            said.turns.append((self, Block(self.layout, number, len(said.texts))))
            said.texts += [text if isinstance(text, str) else registers[text] for text in self._texts]
        for key, register in self._changes.items():
            said.namespaces[key] = registers[register]
        said.passages.append(self)
        return True

    def _registers(self, inputs: Sequence[Any]) -> Sequence[Any] | None:
        """All registers after the steps; None where a guard does not hold."""
        if self.uses < COMPILED_AT:
            return run_steps(self._steps, inputs)
        if self._compiled is None:
            self._compiled = compiled(self._steps, INPUTS)
        try:
            return self._compiled(inputs)
        except Exception:  # a step may raise only where the guards do not hold
            return None

    def writers_of(self, entries: Sequence[Entry], number: int) -> list[tuple[Origin, Owner]]:
        """Of each piece whose it is, and who was being rendered."""
        key = (entries[number].messages[0] if number >= 0 else 0, number)
        found = self._placed.get(key)
        if found is None:
            if len(self._placed) >= MAX_PLACED:
                self._placed.clear()
            found = self._placed[key] = [_placed(writer, entries, number) for writer in self._writers]
        return found


def _placed(writer: Writer, entries: Sequence[Entry], number: int) -> tuple[Origin, Owner]:
    places = {"own": number, "first": 0, "nobody": UNOWNED.entry}
    entry = places[writer.entry]
    message = entries[entry].messages[writer.message] if writer.message >= 0 else -1
    origin = Origin(Owner(entry, writer.call), writer.kind, message)
    return origin, Owner(places[writer.emitter], writer.emitter_call)


JOINED = ("render/texts-joined", "render/systems-joined")
"""Counts of rows in which one field holds several messages' texts."""


class Told(NamedTuple):
    """A row's render, and the passages that it is put together of."""

    dialog: Dialog
    rendered: Rendered
    passages: list[Passage]


class Said:
    """What the passages have said so far."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.turns: list[tuple[Passage, Block]] = []
        """Those that say something."""
        self.namespaces: dict[tuple[int, str], Any] = {}
        self.passages: list[Passage] = []

    def segments(self, entries: Sequence[Entry]) -> list[Segment]:
        """Who wrote what."""
        writers = [writer for passage, block in self.turns for writer in passage.writers_of(entries, block.entry)]
        stretches = (
            Stretch(len(piece), origin, emitter) for piece, (origin, emitter) in zip(self.texts, writers, strict=True)
        )
        return joined_segments(stretches, entries)


class ToldDialog(Dialog):
    """What passages say of a conversation: who wrote what is found out where it is asked."""

    def __init__(self, text: str, said: Said, blocks: Blocks, written: Written, counts: Counter[str]) -> None:
        super().__init__(text, [], written, counts)
        self._said, self._blocks = said, blocks

    @property
    def segments(self) -> list[Segment]:
        """Who wrote what."""
        self._segments = self._segments or self._said.segments(self.written.entries)
        return self._segments

    @property
    def contents(self) -> list[tuple[int, int]]:
        """(start, end) of what content wrote."""
        return self._blocks.contents()

    def covers(self, counts: Counter[str]) -> bool:
        """Whether every message stands in a block of its own, once and as it is."""
        return self._blocks.are_whole(counts)


class Passages:
    """The passages of one template.

    Args:
        template: the template.
        form: how conversations are written for it.

    Attributes:
        served: rows that were put together.
        is_off: a row came out wrong, or nothing can be recorded: none is put together any more.
    """

    def __init__(self, template: Template, form: Form) -> None:
        self._template, self._form = template, form
        self._first: dict[Hashable, list[Passage]] = {}
        self._recordings = self._refusals = 0
        self.served = 0
        self.is_off = False

    def render(self, conversation: Conversation, kwargs: Mapping[str, Json], finish: Finish) -> Told | None:
        """A row's render; None where one of its passages is not known.

        Args:
            conversation: the row.
            kwargs: its template arguments.
            finish: gives the spans.
        """
        if self.is_off or not self._first:
            return None
        try:
            return self._told(conversation, kwargs, finish, None)
        except Exception:  # what the row's own render says of it counts
            return None

    def learn(
        self, conversation: Conversation, kwargs: Mapping[str, Json], finish: Finish, found: tuple[Dialog, Rendered]
    ) -> None:
        """Record the passages of a row that are not known.

        Args:
            conversation: the row.
            kwargs: its template arguments.
            finish: gives the spans.
            found: its render.
        """
        allowed = min(MAX_RECORDINGS, FREE_RECORDINGS + self.served // ROWS_PER_RECORDING)
        if self.is_off or self._recordings >= allowed:
            return
        self._recordings += 1
        try:
            told = self._told(conversation, kwargs, finish, self._template.passages(conversation, self._form, kwargs))
        except Exception:  # the template may do anything with symbols; then there are no passages
            self._refusals += 1
            self.is_off = self._refusals >= MAX_REFUSALS and not self.served
            return
        if told is not None and not is_same(found, told[:2]):
            self.is_off = True

    def _told(
        self, conversation: Conversation, kwargs: Mapping[str, Json], finish: Finish, recorded: list[Recorded] | None
    ) -> Told | None:
        counts: Counter[str] = Counter()
        written = write(conversation, self._form, None, counts, is_read=True)
        if any(counts[name] for name in JOINED):
            return None  # whose each part of a joined text is depends on what the template trims
        kinds = [_kind_of(conversation, entry) for entry in written.entries]
        first = self._first_of(kinds[0], written, kwargs, is_new=recorded is not None)
        said = _Teller(written, kinds, recorded).tell(first)
        if said is None:
            return None
        text = "".join(said.texts)
        if len(text) > MAX_CHARACTERS:
            return None
        blocks = Blocks(conversation, written.entries, [block for _, block in said.turns], said.texts)
        dialog = ToldDialog(text, said, blocks, written, counts)
        return Told(dialog, _finished(dialog, blocks, finish), said.passages)

    def _first_of(self, kind: Hashable, written: Written, kwargs: Mapping[str, Json], *, is_new: bool) -> list[Passage]:
        """The passages that a row may begin with."""
        key = (kind, bool(written.tools), repr(sorted(kwargs.items())))
        return self._first.setdefault(key, []) if is_new else self._first.get(key, [])


def _finished(dialog: Dialog, blocks: Blocks, finish: Finish) -> Rendered:
    """The spans of a row: of its blocks where they are known, else by the rules of whole rows, and learned of it."""
    rendered = blocks.rendered(dialog.text, dialog.counts)
    if rendered is not None:
        return rendered
    attributed = finish(dialog)
    blocks.learn(attributed)
    return attributed.rendered


def _kind_of(conversation: Conversation, entry: Entry) -> Hashable:
    """What decides which of an entry's messages a field of it is."""
    return entry.role, tuple([rank(conversation.messages[index]) for index in entry.messages])


class _Teller:
    """Says one conversation, passage by passage.

    Args:
        written: the conversation as the template is given it.
        kinds: of its entries.
        recorded: its passages, in order, to learn those that are not known; None to go without.
    """

    def __init__(self, written: Written, kinds: Sequence[Hashable], recorded: list[Recorded] | None) -> None:
        self._written, self._kinds = written, kinds
        self._new = None if recorded is None else iter(recorded)
        self._said = Said()

    def tell(self, first: list[Passage]) -> Said | None:
        """All that is said; None where a passage is not known."""
        known = first
        while True:
            outside = self._next(known, -1, 0, 0)
            if outside is None:
                return None
            if outside.walk is None:
                return self._said
            if not self._walk(outside):
                return None
            known = outside.then

    def _walk(self, outside: Passage) -> bool:
        """The turns of the loop behind a passage."""
        numbers = walked(outside.walk or (), len(self._kinds))
        for index, number in enumerate(numbers):
            kind = self._kinds[number]
            known = outside.own.get(kind, []) if self._new is None else outside.own.setdefault(kind, [])
            turn = self._next(known, number, index, len(numbers))
            if turn is None:
                return False
            if turn.breaks:
                break
        return True

    def _next(self, known: list[Passage], number: int, index: int, length: int) -> Passage | None:
        said, written = self._said, self._written
        message = written.dicts[number] if number >= 0 else None
        inputs = (written.dicts, written.tools, message, index, length, said.namespaces)
        recorded = None if self._new is None else next(self._new)
        for place, passage in enumerate(known):
            if passage.run(inputs, number, said):
                if place and passage.uses > known[place - 1].uses:  # the frequent ones are tried first
                    known[place - 1 : place + 1] = passage, known[place - 1]
                return passage
        if recorded is None or len(known) >= MAX_VARIANTS:
            return None
        passage = Passage(recorded)
        if not passage.run(inputs, number, said):
            raise Refused("the recorded passage does not hold for its own message")
        known.append(passage)
        return passage


def is_same(one: tuple[Dialog, Rendered], other: tuple[Dialog, Rendered]) -> bool:
    """Whether two renders of a row are alike in text, spans, segments and counts."""
    (first, rendered), (second, filled) = one, other
    return rendered == filled and first.segments == second.segments and first.counts == second.counts
