"""A template's run on symbols, passage by passage: each is a program of its own.

What a passage is given are registers; all that a template carries from one passage to the next goes through namespaces,
whose values are handed on as registers, or hangs on the way it took outside of loops, which `passages` tells apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jinja2
from jinja2.runtime import Context

from turnmill.rendering.environment import TemplateNamespace, in_context
from turnmill.rendering.filter_marks import marked_as
from turnmill.rendering.form import Written, leaves
from turnmill.rendering.passage_rewrite import PassageRewrite
from turnmill.rendering.recording import RecordingEnvironment, length_asked
from turnmill.rendering.segments import Emitted
from turnmill.rendering.steps import Bounds, Recorder, Step, Symbolic, is_symbolic, refuse, without_idle
from turnmill.rendering.symbol_values import SymbolDict, SymbolList
from turnmill.rendering.symbols import Symbol, atoms_of
from turnmill.rendering.trace import NOBODY, Owner, Trace
from turnmill.rendering.tracked import MIXED, origins_within
from turnmill.rendering.walk import (
    INDEX,
    INPUTS,
    LENGTH,
    LOOP_FACTS,
    MESSAGE,
    NEIGHBOURS,
    TOOLS,
    MessageList,
    Namespaces,
    Number,
    OpenedField,
    Walk,
    exact,
    number,
)

OUTSIDE = None
"""The number of the message at hand where there is none."""


class Writer(NamedTuple):
    """Whose a piece is and who was being rendered, told from the message at hand."""

    entry: str
    """`own`, `first` (the first message's) or `nobody`."""
    call: int
    kind: Any
    message: int
    """Which of the entry's messages, -1 for none."""
    emitter: str
    emitter_call: int


class Piece(NamedTuple):
    """Text of one writer: the template's, or a register's."""

    text: str | int
    writer: Writer


class Recorded(NamedTuple):
    """One passage as it was recorded."""

    steps: list[Step]
    pieces: list[Piece]
    changes: dict[tuple[int, str], int]
    """What namespaces hold behind it: namespace and attribute → register."""
    walk: Bounds | None
    """Of a passage outside of loops: the slices of the messages that the loop behind it walks; None at the end."""
    breaks: bool
    """Of a turn of a loop: it ends the loop."""


class _Open:
    """The passage that is being recorded.

    Args:
        place: of its message; `OUTSIDE` for none.
    """

    def __init__(self, place: int | None) -> None:
        self.place = place
        self.recorder = Recorder(INPUTS)
        self.emitted: list[Emitted] = []


class PassageEnvironment(RecordingEnvironment):
    """Runs a template on symbols, passage by passage.

    Args:
        date: the day the template's clock shows, ISO 8601.
    """

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self, date: str) -> None:
        super().__init__(date)
        self._rewrite = PassageRewrite()
        names = [name for name in self.filters if not name.startswith("_")]
        self.filters |= {name: self._lasting(self.filters[name]) for name in names}
        self.filters |= {"length": self._counted, "count": self._counted, "_refused": _refused}
        self.filters |= {"_walk": in_context(self._walked), "_leave": in_context(self._left)}
        self.filters["_loop"] = in_context(self._said_of_loop)
        self.globals |= {"namespace": _namespace_of(self), "cycler": _refused, "joiner": _refused}

    def record(
        self, template: jinja2.Template, written: Written, variables: Mapping[str, Any], trace: Trace
    ) -> list[Recorded]:
        """The passages of a run, in order.

        Args:
            template: of this environment.
            written: the conversation, tracked.
            variables: what the template is given beside it.
            trace: of `written`.

        Raises:
            Refused: the template does with content what cannot be recorded.
        """
        self._entries, self._found = written.entries, list[Recorded]()
        self._walk: Walk | None = None
        self.namespaces = Namespaces()
        self.open: _Open | None = _Open(OUTSIDE)
        for leaf in leaves({name: value for name, value in variables.items() if name not in ("messages", "tools")}):
            exact(leaf)
        given = {**variables, "messages": MessageList(written.dicts, (), self._recorder), "tools": None}
        if written.tools is not None:
            given["tools"] = Tools(self, trace).opened(written.tools, TOOLS)
        for text in self.render_pieces(template, given, trace):
            self._at_hand().emitted.append(Emitted(text, trace.owner))
        self._close(None)
        return self._found

    def _at_hand(self) -> _Open:
        if self.open is None:
            refuse("a loop over messages says nothing of them")
        return self.open

    def _recorder(self) -> Recorder:
        return self._at_hand().recorder

    def field(self, *, is_printable: bool) -> OpenedField:
        """Opens what the passage at hand is given."""
        return OpenedField(self._recorder(), self.trace, is_printable=is_printable)

    def _close(self, walk: Bounds | None, *, breaks: bool = False) -> None:
        passage = self._at_hand()
        pieces = list(self._pieces(passage))
        changes = self.namespaces.changes(passage.recorder)
        passage.recorder.is_closed = True
        used = [*changes.values(), *(piece.text for piece in pieces if isinstance(piece.text, int))]
        steps, numbers = without_idle(passage.recorder.steps, INPUTS, used)
        pieces = [
            piece if isinstance(piece.text, str) else piece._replace(text=numbers[piece.text]) for piece in pieces
        ]
        changes = {key: numbers[register] for key, register in changes.items()}
        self._found.append(Recorded(steps, pieces, changes, walk, breaks))
        self.open = None

    def _pieces(self, passage: _Open) -> Iterator[Piece]:
        """The pieces of a passage without empty ones; neighbours of one writer that the template wrote as one."""
        held: Piece | None = None
        for text, emitter in passage.emitted:
            if isinstance(text, Symbol) and text.recorder is not passage.recorder:
                refuse("content is kept for later")
            for atom in atoms_of(text):
                is_empty = not str.__len__(atom.text)
                if atom.register is not None:
                    passage.recorder.guard("truth", (), (atom.register,), not is_empty)
                if is_empty:
                    continue
                writer = self._writer(passage, atom.origin, emitter)
                piece = Piece(str.__str__(atom.text) if atom.register is None else atom.register, writer)
                if held and held.writer == writer and isinstance(held.text, str) and isinstance(piece.text, str):
                    held = Piece(held.text + piece.text, writer)
                    continue
                if held:
                    yield held
                held = piece
        if held:
            yield held

    def _writer(self, passage: _Open, origin_number: int, emitter: Owner) -> Writer:
        if origin_number == MIXED:
            refuse("whose a text is hangs on the message")
        origin = self.trace.origins[origin_number]
        entry, message = self._whose(passage, origin.owner.entry), -1
        if origin.message >= 0:
            message = self._entries[origin.owner.entry].messages.index(origin.message)
        emitting = self._whose(passage, emitter.entry)
        return Writer(entry, origin.owner.call, origin.kind, message, emitting, emitter.call)

    def _whose(self, passage: _Open, entry: int) -> str:
        if entry == NOBODY:
            return "nobody"
        if entry == passage.place:
            return "own"
        return "first" if entry == 0 else refuse("a message stands in the passage of another")

    def _walked(self, value: Any) -> Any:
        """What an outer loop walks: of the messages every turn is a passage."""
        if not isinstance(value, MessageList) or self._at_hand().place is not OUTSIDE or self._walk is not None:
            return value
        self._close(value.bounds)
        self._walk = Walk(value, self.trace)
        return self._walk

    def _enter(self, value: Any) -> None:
        if self._walk is not None and id(value) in self._walk.waiting:
            self._turn(value, *self._walk.waiting.pop(id(value)))
        elif isinstance(value, SymbolDict) and not _is_printable(value):
            refuse("a message is rendered in the passage of another")
        elif not isinstance(value, Symbolic) and MIXED in origins_within(value):
            refuse("whose turn is rendered hangs on the message")
        super()._enter(value)

    def _turn(self, value: SymbolDict, index: int, place: int) -> None:
        """A turn of a loop over messages begins."""
        if self.open is not None:
            self._close(None)
        self.open = _Open(place)
        if self._walk is not None:
            self._walk.index = index
        value.opened, value.register = self.field(is_printable=True), MESSAGE

    def _assign(self, value: Any) -> None:
        if isinstance(value, SymbolDict) and not _is_printable(value):
            return
        super()._assign(value)

    def _left(self, _: None) -> None:
        """An outer loop has ended."""
        self._pop(None)
        if self._walk is None:
            return
        if self.open is not None:
            self._close(None, breaks=not self._walk.is_whole)
        self._walk, self.open = None, _Open(OUTSIDE)

    def _said_of_loop(self, pair: list[Any]) -> Any:
        name, value = str.__str__(pair[0]), pair[1]
        if self._walk is None:
            return value
        if name in NEIGHBOURS:
            return self._beside(self._walk, NEIGHBOURS[name], value)
        if name not in LOOP_FACTS:
            refuse(f"a loop over messages is asked for its {name}")
        recorder, fact = self._recorder(), LOOP_FACTS[name]
        if isinstance(value, bool):
            return recorder.guard("computed", (fact,), (INDEX, LENGTH), value)
        return number(recorder, value, recorder.register("computed", (fact,), (INDEX, LENGTH)))

    def _beside(self, walk: Walk, place_of: Callable[[int, int], int], value: Any) -> Any:
        """A message beside the one at hand, taken by its place; undefined where there is none."""
        recorder, messages = self._recorder(), walk.messages
        index, is_there = walk.index, not isinstance(value, jinja2.Undefined)
        found = place_of(index, len(walk))
        if is_there != (found >= 0):
            refuse("a loop has another message beside the one at hand")
        place = number(recorder, found, recorder.register("computed", (place_of,), (INDEX, LENGTH)))
        return self._message(messages, place) if place >= 0 else value

    def _counted(self, value: Any) -> int:
        return value.counted() if isinstance(value, MessageList) else length_asked(value)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """The item; a message by its number."""
        if isinstance(obj, TemplateNamespace):
            refuse("a namespace is subscripted")
        return self._message(obj, argument) if isinstance(obj, MessageList) else super().getitem(obj, argument)

    def _message(self, messages: MessageList, index: Any) -> Any:
        if not isinstance(index, int):
            refuse("a message is taken by no number")
        found = messages.place_of(index)
        if found is None:
            return self.undefined(obj=messages, name=str(int(index)))
        place, register = found
        is_first = not isinstance(index, Number) and index == 0 and not messages.bounds
        is_printable = is_first and self._at_hand().place != 0  # there it would be taken for the message at hand
        return self.field(is_printable=is_printable).opened(messages.messages[place], register)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """The attribute; of a namespace what was handed on."""
        if isinstance(obj, MessageList):
            refuse("the list of messages is asked for an attribute")
        found = super().getattr(obj, attribute)
        if isinstance(obj, TemplateNamespace):
            return self.namespaces.read(obj, attribute, found, self._recorder())
        return found

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """`+`, `-` and `%` count with numbers of messages."""
        if isinstance(left, Number) or isinstance(right, Number):
            if operator not in "+-%" or not isinstance(left, int) or not isinstance(right, int):
                refuse("a number of messages is more than counted with")
            return self.binop_table[operator](left, right)
        if operator in super().intercepted_binops:
            return exact(super().call_binop(context, operator, left, right))
        if is_symbolic(left) or is_symbolic(right):
            refuse("content is computed with")
        return exact(self.binop_table[operator](left, right))

    def _lasting(self, function: Any) -> Callable[..., Any]:
        """A filter whose iterator lasts as long as the passage: walked once, it would be empty for the next."""

        def run(*arguments: Any, **named: Any) -> Any:
            made = exact(function(*arguments, **named))
            return Held(made, self._at_hand) if isinstance(made, Iterator) else made

        return marked_as(function, run)


class Tools:
    """Opens the tools, in whichever passage.

    Args:
        environment: knows the passage at hand.
        trace: knows whose they are.
    """

    is_printable = True

    def __init__(self, environment: PassageEnvironment, trace: Trace) -> None:
        self._environment, self._trace = environment, trace

    @property
    def recorder(self) -> Recorder:
        """Of the passage at hand."""
        return self._environment.field(is_printable=True).recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment.field(is_printable=True), name)

    def opened(self, value: Any, register: int) -> Any:
        """The tools as a list to open."""
        made = SymbolList(value)
        made.opened, made.register = self, register  # type: ignore[assignment]  # it opens as one does
        self._trace.stand_for(made, value)
        return made


class Held:
    """An iterator of one passage."""

    def __init__(self, items: Iterator[Any], at_hand: Callable[[], _Open]) -> None:
        self._items, self._at_hand, self._passage = items, at_hand, at_hand()

    def __iter__(self) -> Held:
        return self

    def __next__(self) -> Any:
        if self._at_hand() is not self._passage:
            refuse("an iterator is kept for later")
        return next(self._items)


def _is_printable(value: SymbolDict) -> bool:
    return bool(getattr(value.opened, "is_printable", True))


def _refused(*_: Any) -> Any:
    refuse("what a loop or a global keeps is not known")


def _namespace_of(environment: PassageEnvironment) -> type[TemplateNamespace]:
    """The class of namespaces whose writes are noted."""

    class PassageNamespace(TemplateNamespace):
        def __init__(*args: Any, **kwargs: Any) -> None:
            TemplateNamespace.__init__(*args, **kwargs)
            is_lasting = environment._at_hand().place is OUTSIDE
            environment.namespaces.create(args[0], dict(*args[1:], **kwargs), is_lasting=is_lasting)

        def __setitem__(self, name: str, value: Any) -> None:
            TemplateNamespace.__setitem__(self, name, value)
            environment.namespaces.write(self, name, value)

    return PassageNamespace
