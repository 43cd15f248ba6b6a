"""Programs: what a template did with one conversation, done again with others of the same shape, without the template.

A program is a straight line of steps over a conversation's texts, with guards wherever content decided something, and
the layout of what came out. Its spans are the recorded ones, with their edges at pieces of the layout. It is built when
a shape is seen for the third time, proven on the row at hand, and proven again on its first use and on a sample of
rows; one wrong result ends all programs of the template.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from xxhash import xxh3_64_intdigest

from turnmill.conversation import Conversation, Json, Message
from turnmill.errors import Rejected
from turnmill.rendered import Kind, Rendered, Span
from turnmill.rendering.form import Form, Written, function_name, tool_as_written
from turnmill.rendering.limits import MAX_CHARACTERS
from turnmill.rendering.passages import Finish, Passages, Told, is_same
from turnmill.rendering.segments import Segment
from turnmill.rendering.shapes import Shape, Shapes
from turnmill.rendering.steps import Refused, Step, run_steps
from turnmill.rendering.symbols import Atom, Symbol
from turnmill.rendering.template import Dialog, Recording, Template
from turnmill.rendering.tracked import MIXED, UNKNOWN

BUILD_AT = 3
"""Sights of a shape before its program is built: a program costs as much as three renders."""
BUILD_TOLD_AT = 12
"""The same where passages render the shape: a program is some ten times as fast as they are."""
MAX_VARIANTS = 6
"""Programs of one shape: contents that answer a guard differently take another way through the template."""
PROVEN_USES = 1
PROVE_EVERY = 64
"""A program's first use is proven, and then one row in so many, chosen by its text's hash: its text."""
PROVE_SPANS_EVERY = 4
"""Of one in so many of those the spans and counts are proven too, which costs three times as much."""

Plainly = Callable[[], tuple[Dialog, Rendered]]
"""Renders a row with the template."""

Edge = tuple[int, int]
"""A place in any text of a program: the piece, and how many characters into it."""


class Outline(NamedTuple):
    """A recorded render whose edges are places in the layout."""

    layout: list[str | int]
    """The template's own text, or the register of a content's, piece by piece."""
    segments: list[tuple[Edge, Edge, Segment]]
    ends: list[Edge]
    """Of the spans."""
    messages: list[int]
    kinds: list[Kind]
    prompt_ends: list[Edge]
    added_stop: str
    said: list[int] | None
    """Each message's piece; None where a message has none of its own, or several."""


class FilledDialog(Dialog):
    """What a program says of a conversation: who wrote what is found out where it is asked.

    Args:
        pieces: of its text.
        starts: of each piece, and the end.
        inputs: registers before the first step; the texts of the messages come first.
        program: what said it.
    """

    def __init__(self, pieces: Sequence[str], starts: Sequence[int], inputs: Sequence[Any], program: Program) -> None:
        super().__init__("".join(pieces), [], program.written, program.counts)
        self._pieces, self._starts, self._inputs, self._outline = pieces, starts, inputs, program.outline

    @property
    def segments(self) -> list[Segment]:
        """Who wrote what."""
        self._segments = self._segments or list(map(self._placed, self._outline.segments))
        return self._segments

    def _placed(self, located: tuple[Edge, Edge, Segment]) -> Segment:
        (low, into), (high, out), segment = located
        return Segment(self._starts[low] + into, self._starts[high] + out, *segment[2:])

    @property
    def contents(self) -> list[tuple[int, int]]:
        """(start, end) of what content wrote."""
        starts = self._starts
        return [
            (starts[low] + into, starts[high] + out)
            for (low, into), (high, out), segment in self._outline.segments
            if segment.kind is not None
        ]

    def covers(self, counts: Counter[str]) -> bool:
        """Whether every message stands there once and as it is."""
        said = self._outline.said
        return said is not None and [self._pieces[piece] for piece in said] == self._inputs[: len(said)]


class Program:
    """What is done with conversations of one shape.

    Attributes:
        outline: of its render.
        written: what that was of.
        counts: of it.
        uses: how often it gave a text.
        size: its steps, and the pieces of its render and their writers.
    """

    def __init__(self, steps: Sequence[Step], outline: Outline, written: Written, counts: Counter[str]) -> None:
        self._steps = steps
        self.outline, self.written, self.counts = outline, written, counts
        self.uses = 0
        self.size = len(steps) + len(outline.layout) + len(outline.segments)

    def fill(self, inputs: Sequence[Any]) -> tuple[Dialog, Rendered] | None:
        """The render of another conversation of the shape; None where a guard does not hold."""
        registers = run_steps(self._steps, inputs)
        if registers is None:
            return None
        outline = self.outline
        pieces = [piece if isinstance(piece, str) else registers[piece] for piece in outline.layout]
        starts = [0, *accumulate(map(len, pieces))]
        if starts[-1] > MAX_CHARACTERS:
            return None
        span_ends = [starts[piece] + into for piece, into in outline.ends]
        spans = tuple(map(Span, [0, *span_ends], span_ends, outline.messages, outline.kinds))
        ends = tuple(starts[piece] + into for piece, into in outline.prompt_ends)
        self.uses += 1
        dialog = FilledDialog(pieces, starts, inputs, self)
        return dialog, Rendered(dialog.text + outline.added_stop, spans, ends)


def build(recording: Recording, dialog: Dialog, rendered: Rendered) -> Program:
    """The program of a recorded render.

    Args:
        recording: the run on symbols.
        dialog: the render of the same conversation.
        rendered: its spans.

    Raises:
        Refused: an edge lies inside content, or a piece of content has several writers.
    """
    atoms = [atom for piece in recording.pieces for atom in _atoms(piece)]
    if "".join(atom.text for atom in atoms) != dialog.text:
        raise Refused("the run on symbols gave another text")
    recorder = recording.recorder
    for atom in atoms:
        if atom.register is not None:
            if atom.origin == MIXED:
                raise Refused("what is left of a text of several writers is whose it is by content")
            recorder.guard("truth", (), (atom.register,), bool(str.__len__(atom.text)))
    outline = _outline(_merged(atoms), dialog, rendered, recording.conversation)
    return Program(list(recorder.steps), outline, Written(dialog.written.entries, [], None), dialog.counts)


def _atoms(piece: str) -> Sequence[Atom]:
    return piece.atoms if isinstance(piece, Symbol) else (Atom(piece, None, UNKNOWN),)


def _merged(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms without empty ones, neighbours of template text as one."""
    merged: list[Atom] = []
    for atom in atoms:
        if not str.__len__(atom.text):
            continue
        text = str.__str__(atom.text)
        if merged and atom.register is None and merged[-1].register is None:
            merged[-1] = Atom(merged[-1].text + text, None, UNKNOWN)
        else:
            merged.append(Atom(text, atom.register, atom.origin))
    return merged


def _said(atoms: Sequence[Atom], fields: Sequence[tuple[Edge, Edge, Segment]], row: Conversation) -> list[int] | None:
    """The piece of each message, where that is all that content wrote; None where there is more to look for."""
    if row.tools or any(message.is_call for message in row.messages):
        return None
    pieces = [number for number, atom in enumerate(atoms) if atom.register is not None]
    whole = [((piece, 0), (piece + 1, 0)) for piece in pieces]
    in_order = [segment.message for _, _, segment in fields] == list(range(len(row.messages)))
    return pieces if in_order and [(low, high) for low, high, _ in fields] == whole else None


def _outline(atoms: Sequence[Atom], dialog: Dialog, rendered: Rendered, conversation: Conversation) -> Outline:
    starts = [0, *accumulate(len(atom.text) for atom in atoms)]
    end = len(dialog.text)

    def edge(place: int) -> Edge:
        if place >= end:
            return len(atoms), place - end
        piece = bisect_right(starts, place) - 1
        into = place - starts[piece]
        if into and atoms[piece].register is not None:
            raise Refused("a span begins inside content")
        return piece, into

    for segment in dialog.segments:
        (low, _), (high, out) = edge(segment.start), edge(segment.end)
        if segment.is_literal and any(atom.register is not None for atom in atoms[low : high + (out > 0)]):
            raise Refused("the template's own text holds content")
    segments = [(edge(segment.start), edge(segment.end), segment) for segment in dialog.segments]
    return Outline(
        [atom.text if atom.register is None else atom.register for atom in atoms],
        segments,
        [edge(span.end) for span in rendered.spans],
        [span.message for span in rendered.spans],
        [span.kind for span in rendered.spans],
        [edge(place) for place in rendered.prompt_ends],
        rendered.text[end:],
        _said(atoms, [one for one in segments if not one[2].is_literal], conversation),
    )


def inputs_of(conversation: Conversation, form: Form) -> list[Any]:
    """The registers before the first step: texts, names of functions, tools."""
    messages = conversation.messages
    return [
        *[message.text for message in messages],
        *["" if one.recipient is None and one.name is None else function_name(one) for one in messages],
        *[tool_as_written(tool, form) for tool in conversation.tools],
    ]


def shape_of(
    conversation: Conversation, form: Form, kwargs: Mapping[str, Json], *, with_names: bool = True
) -> Hashable:
    """What a program hangs on beside its inputs: everything else that the template is given.

    None for a conversation that no program can be made for: its recorded text stands in for its reasoning.

    Args:
        conversation: the row.
        form: how it is written for the template.
        kwargs: template arguments.
        with_names: the names of functions are inputs.
    """
    messages = conversation.messages
    if not form.reasoning and any(message.channel == "analysis" for message in messages):
        return None
    return (
        tuple([(one.role, one.channel, one.recorded, *_names(one, with_names)) for one in messages]),
        tuple(tool_as_written(tool, form) is tool for tool in conversation.tools),
        repr(sorted(kwargs.items())),
    )


def _names(message: Message, with_names: bool) -> tuple[object, ...]:
    """Of a message's author and recipient what is no input."""
    if message.recipient is None or not with_names or not (message.is_call or message.role == "tool"):
        return message.name, message.recipient
    return message.name if message.is_call else None, message.is_call


class Fills:
    """The programs of one template, of whole conversations and of passages.

    Args:
        template: the template.
        form: how conversations are written for it.

    Attributes:
        passages: what renders are put together of where a conversation's shape is rare.
        served: rows that a program or passages rendered.
        distrusted: a program gave another render than the template: none is used any more.
    """

    def __init__(self, template: Template, form: Form) -> None:
        self._template, self._form = template, form
        self._shapes = Shapes()
        self._with_names = True
        self._missed = 0
        self.passages = Passages(template, form)
        self.served = 0
        self.distrusted = False

    def render(
        self, conversation: Conversation, kwargs: Mapping[str, Json], plainly: Plainly, finish: Finish
    ) -> tuple[Dialog, Rendered]:
        """A row's render: by a program where there is one, else put together of passages, else by the template.

        Args:
            conversation: the row.
            kwargs: its template arguments.
            plainly: renders it with the template.
            finish: gives the spans of a dialog.

        Raises:
            Rejected: the template cannot say the row.
        """
        key = None if self.distrusted else shape_of(conversation, self._form, kwargs, with_names=self._with_names)
        if key is None:
            return plainly()
        shape = self._shapes.seen(key, len(conversation.messages))
        inputs, says = inputs_of(conversation, self._form), partial(self._says, conversation, kwargs)
        for program in shape.programs:
            filled = program.fill(inputs)
            if filled is not None:
                return self._proven(filled, plainly, says, is_new=program.uses <= PROVEN_USES)
        shape.sights += 1
        told = self.passages.render(conversation, kwargs, finish)
        if told is not None:
            if shape.sights >= BUILD_TOLD_AT and not shape.is_refused:
                self._build(shape, conversation, kwargs, inputs, (told.dialog, told.rendered))
            return self._told(told, plainly, says)
        found = plainly()
        self._missed += 1
        if shape.sights >= BUILD_AT and not shape.is_refused:
            self._build(shape, conversation, kwargs, inputs, found)
        elif self._missed > BUILD_AT:
            self.passages.learn(conversation, kwargs, finish, found)
        return found

    def _told(self, told: Told, plainly: Plainly, says: Callable[[str], bool]) -> tuple[Dialog, Rendered]:
        is_new = not all(passage.uses for passage in told.passages)
        for passage in told.passages:
            passage.uses += 1
        self.passages.served += 1
        return self._proven((told.dialog, told.rendered), plainly, says, is_new=is_new)

    def _proven(
        self, filled: tuple[Dialog, Rendered], plainly: Plainly, says: Callable[[str], bool], *, is_new: bool
    ) -> tuple[Dialog, Rendered]:
        """A replayed render; what is new, and a sample of the others, is compared with the template's own."""
        turn, place = divmod(xxh3_64_intdigest(filled[1].text.encode()), PROVE_EVERY)
        is_compared = is_new or (place == 0 and turn % PROVE_SPANS_EVERY == 0)
        if not is_compared and (place or says(filled[0].text)):
            self.served += 1
            return filled
        found = plainly()
        if not is_compared or not is_same(found, filled):
            self.distrusted = True
            self._shapes.clear()
            found[0].counts["render/replay-distrusted"] += 1
        return found

    def _says(self, conversation: Conversation, kwargs: Mapping[str, Json], text: str) -> bool:
        """Whether the template itself says a text of a row."""
        with suppress(Rejected):
            return self._template.plain(conversation, self._form, kwargs) == text
        return False

    def _build(
        self,
        shape: Shape,
        conversation: Conversation,
        kwargs: Mapping[str, Json],
        inputs: Sequence[Any],
        found: tuple[Dialog, Rendered],
    ) -> None:
        shape.is_refused = len(shape.programs) + 1 >= MAX_VARIANTS
        try:
            recording = self._template.recorded(conversation, self._form, kwargs, with_names=self._with_names)
            program = build(recording, *found)
        except Exception:  # the template may do anything with symbols; then there is no program
            shape.is_refused = True
            self._shapes.keep(shape, None)
            if self._with_names and any(message.is_call for message in conversation.messages):
                self._with_names = False
                self._shapes.clear()
            return
        filled = program.fill(inputs)
        program.uses = 0
        if filled is not None and is_same(found, filled):
            self._shapes.keep(shape, program)
        else:
            shape.is_refused = True
            self._shapes.keep(shape, None)
