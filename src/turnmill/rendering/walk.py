"""What a template is given where its run is recorded message by message: nothing of it is known but by asking.

A *passage* is what a template does in one go: one turn of its loop over the messages, or what lies before, between and
behind such loops.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from turnmill.rendering.environment import TemplateNamespace
from turnmill.rendering.steps import Bounds, Recorder, Symbolic, constant, refuse, walked
from turnmill.rendering.symbol_values import Opened, SymbolDict, SymbolList, Unprinted, json_symbol
from turnmill.rendering.symbols import Atom, Symbol, symbol
from turnmill.rendering.trace import Origin, Trace
from turnmill.rendering.tracked import MIXED, UNKNOWN, Tracked, tracked

MESSAGES, TOOLS, MESSAGE, INDEX, LENGTH, NAMESPACES = range(6)
"""The registers of a passage before its first step: all messages and tools as written for the template, the message at
hand (None outside of loops), its place in the loop, how many the loop has, and what namespaces hold."""
INPUTS = 6

LOOP_FACTS: dict[str, Callable[[int, int], Any]] = {
    "index": lambda index, length: index + 1,
    "index0": lambda index, length: index,
    "revindex": lambda index, length: length - index,
    "revindex0": lambda index, length: length - index - 1,
    "length": lambda index, length: length,
    "first": lambda index, length: index == 0,
    "last": lambda index, length: index == length - 1,
}
"""What a loop says of itself: name → from place and length."""

NEIGHBOURS: dict[str, Callable[[int, int], int]] = {
    "previtem": lambda index, length: index - 1,
    "nextitem": lambda index, length: index + 1 if index + 1 < length else -1,
}
"""The messages beside the one at hand: name → place in the loop, -1 for none."""


class Number(int, Symbolic):
    """A number of messages, or of one: what is computed of it is recorded, how it compares is guarded."""

    recorder: Recorder
    register: int

    def _computed(self, compute: Callable[[int, int], int], other: Any, *, is_left: bool = True) -> Number:
        pair = (self.register, register_of(self.recorder, other))
        value = compute(int(self), int(other)) if is_left else compute(int(other), int(self))
        register = self.recorder.register("computed", (compute,), pair if is_left else pair[::-1])
        return number(self.recorder, value, register)

    def _compared(self, compare: Callable[[int, int], bool], other: Any) -> bool:
        if not isinstance(other, int):
            return NotImplemented  # type: ignore[no-any-return]  # as comparisons answer what they do not know
        pair = (self.register, register_of(self.recorder, other))
        return bool(self.recorder.guard("computed", (compare,), pair, compare(int(self), int(other))))

    def __bool__(self) -> bool:
        return bool(self.recorder.guard("truth", (), (self.register,), int(self) != 0))

    def _refused(self, *_: Any) -> NoReturn:
        refuse("a number of messages is more than counted with")

    __hash__ = __str__ = __repr__ = __format__ = __index__ = _refused
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _refused
    __neg__ = __pos__ = __abs__ = __rmod__ = _refused


def _computing(compute: Callable[[int, int], int], *, is_left: bool = True) -> Callable[[Number, Any], Any]:
    return lambda self, other: self._computed(compute, other, is_left=is_left)


def _comparing(compare: Callable[[int, int], bool]) -> Callable[[Number, Any], Any]:
    return lambda self, other: self._compared(compare, other)


for _name in ("add", "sub", "mod"):
    setattr(Number, f"__{_name}__", _computing(getattr(operator, _name)))
for _name in ("add", "sub"):
    setattr(Number, f"__r{_name}__", _computing(getattr(operator, _name), is_left=False))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Number, f"__{_name}__", _comparing(getattr(operator, _name)))


def exact(value: Any) -> Any:
    """A value that is no float: Python compares and computes floats with numbers of messages unasked."""
    return refuse("a float where numbers of messages are counted") if isinstance(value, float) else value


def number(recorder: Recorder, value: int, register: int) -> Number:
    """A number that a register holds."""
    made = int.__new__(Number, value)
    made.recorder, made.register = recorder, register
    return made


def register_of(recorder: Recorder, value: Any) -> int:
    """The register of a number, or of a constant one."""
    if isinstance(value, Number):
        if value.recorder is not recorder:
            refuse("a number is kept for later")
        return value.register
    return recorder.register("constant", (_plain_int(value),), ())


def _plain_int(value: Any) -> int:
    known = constant(value)
    if type(known) not in (int, bool):
        refuse("a number of messages is computed with what is none")
    return int(known)


class OpenedField(Opened):
    """Opens what a template is given: texts keep their writers, and what no message says must be the same.

    Args:
        recorder: of the passage.
        trace: which knows the writers.
        is_printable: whose texts these are is the same for each message of the passage.
    """

    def __init__(self, recorder: Recorder, trace: Trace, *, is_printable: bool) -> None:
        super().__init__(recorder, trace, Origin(trace.owner, None))
        self.is_printable = is_printable

    def admit(self, value: Any, register: int) -> Any:
        """A value as the template may see it."""
        if isinstance(value, Tracked):
            self.recorder.guard("type", (), (register,), str)
            known = value if self.is_printable else tracked(str.__str__(value), MIXED)
            return symbol(self.recorder, known, [Atom(known, register, self._writer(known))])
        if isinstance(value, dict | list):
            self.recorder.guard("type", (), (register,), type(value))
            return self.opened(value, register)
        self.recorder.guard("scalar", (), (register,), repr(exact(value)))
        return value

    def opened(self, value: Any, register: int) -> Any:
        """A dict or list that is opened step by step, and stands for the one given."""
        made: Any = (SymbolDict if isinstance(value, dict) else SymbolList)(value)
        made.opened, made.register = self, register
        self._trace.stand_for(made, value)
        return made

    def _writer(self, text: Tracked) -> int:
        if len(text.runs) > 1:
            return MIXED
        return text.runs[0][1] if text.runs else UNKNOWN

    def text(self, text: str) -> Tracked:
        """A key, with its writer."""
        if isinstance(text, Tracked) and not self.is_printable:
            return tracked(str.__str__(text), MIXED)
        return text if isinstance(text, Tracked) else Tracked(text)

    def json(self, value: SymbolDict | SymbolList, options: Mapping[str, Any]) -> Symbol:
        """The JSON text of what one message, or the tools, hold."""
        if not self.is_printable or not self._trace.is_known(value):
            refuse("JSON of more than one writer's")
        text = tracked(json.dumps(value.plain, **options), self._trace.origin_of(value))
        return json_symbol(self.recorder, text, value.register, options)


class MessageList(Unprinted, list[Any]):
    """The messages, or a slice of them: only walked by a loop, counted, and taken from by number.

    Args:
        messages: all of them.
        bounds: the slices taken.
        recorder_now: gives the recorder of the passage at hand.
    """

    def __init__(self, messages: list[dict[str, Any]], bounds: Bounds, recorder_now: Callable[[], Recorder]) -> None:
        self.numbers = walked(bounds, len(messages))
        super().__init__(messages[index] for index in self.numbers)
        self.messages, self.bounds, self._recorder_now = messages, bounds, recorder_now

    def counted(self) -> Number:
        """How many there are."""
        recorder = self._recorder_now()
        return number(recorder, len(self.numbers), recorder.register("counted", (self.bounds,), (MESSAGES,)))

    def __bool__(self) -> bool:
        return bool(self.counted())

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            refuse("a message is taken unseen")
        bound = (constant(key.start), constant(key.stop), constant(key.step))
        return MessageList(self.messages, (*self.bounds, bound), self._recorder_now)

    def place_of(self, index: Any) -> tuple[int, int] | None:
        """The number of the message at an index, and the register that holds it; None where there is none."""
        recorder = self._recorder_now()
        registers = (MESSAGES, register_of(recorder, index))
        size = len(self.numbers)
        if not recorder.guard("has", (self.bounds,), registers, -size <= int(index) < size):
            return None
        return self.numbers[int(index)], recorder.register("picked", (self.bounds,), registers)

    def _refused(self, *_: Any) -> NoReturn:
        refuse("the messages are looked through unseen")

    __iter__ = __contains__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refused
    __add__ = __radd__ = __mul__ = __rmul__ = __reversed__ = _refused
    __hash__ = None


class Walk:
    """The messages as a loop walks them: each is opened when its turn begins, not when it is fetched.

    Attributes:
        messages: those.
        index: place of the one at hand.
        waiting: place and number of those that are fetched, by identity.
        is_whole: the loop has come to its end.
    """

    def __init__(self, messages: MessageList, trace: Trace) -> None:
        self.messages, self._trace = messages, trace
        self.index = 0
        self.waiting: dict[int, tuple[int, int]] = {}
        self.is_whole = False

    def __len__(self) -> int:
        return len(self.messages.numbers)

    def __iter__(self) -> Iterator[SymbolDict]:
        for index, place in enumerate(self.messages.numbers):
            made = SymbolDict(self.messages.messages[place])
            self._trace.stand_for(made, self.messages.messages[place])
            self.waiting[id(made)] = (index, place)
            yield made
        self.is_whole = True


class Namespaces:
    """What a template's namespaces hold, as passages hand it on."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # ids are only unique while the objects live
        self._written: dict[tuple[int, str], Any] = {}

    def create(self, namespace: Any, attributes: Mapping[str, Any], *, is_lasting: bool) -> None:
        """A namespace is made: one that a turn of the loop makes is gone with it."""
        self._kept.append(namespace)
        if is_lasting:
            self._numbers[id(namespace)] = len(self._numbers)
        for name, value in attributes.items():
            self.write(namespace, name, value)

    def write(self, namespace: Any, name: str, value: Any) -> None:
        """An attribute is set."""
        self._written[id(namespace), str.__str__(name)] = value

    def read(self, namespace: Any, name: str, value: Any, recorder: Recorder) -> Any:
        """An attribute's value: this passage's own, or one handed on."""
        name = str.__str__(name)
        if (id(namespace), name) in self._written:
            return value
        if id(namespace) not in self._numbers:
            refuse("a namespace is kept for later")
        key = (self._numbers[id(namespace)], name)
        if not recorder.guard("holds", (key,), (NAMESPACES,), name in _attributes(namespace)):
            return value
        return _handed_on(value, recorder, recorder.register("item", (key,), (NAMESPACES,)))

    def changes(self, recorder: Recorder) -> dict[tuple[int, str], int]:
        """What this passage hands on: namespace and attribute → the register of its value; the next begins."""
        written, self._written = self._written, {}
        return {
            (self._numbers[namespace], name): _register_of_value(value, recorder)
            for (namespace, name), value in written.items()
            if namespace in self._numbers
        }


def _attributes(namespace: Any) -> dict[str, Any]:
    found: dict[str, Any] = TemplateNamespace.__getattribute__(namespace, "_Namespace__attrs")
    return found


def _handed_on(value: Any, recorder: Recorder, register: int) -> Any:
    """A value of an earlier passage: of a text is not known any more whose it is."""
    if isinstance(value, str):
        recorder.guard("type", (), (register,), str)
        text = str.__str__(value)
        return symbol(recorder, tracked(text, MIXED), [Atom(text, register, MIXED)])
    if isinstance(value, int) and not isinstance(value, bool):
        recorder.guard("type", (), (register,), int)
        return number(recorder, int(value), register)
    if value is not None and not isinstance(value, bool):
        refuse("a namespace holds more than a number, a text or a truth")
    recorder.guard("scalar", (), (register,), repr(value))
    return value


def _register_of_value(value: Any, recorder: Recorder) -> int:
    if isinstance(value, Number | Symbol):
        if value.recorder is not recorder:
            refuse("content is kept for later")
        return value.register
    if isinstance(value, Symbolic) or not (value is None or isinstance(value, bool | int | str)):
        refuse("a namespace holds more than a number, a text or a truth")
    return recorder.register("constant", (constant(value),), ())
