"""Texts that write down what a template does with them.

A `Symbol` is a message's text: its methods give symbols, each made by a step from others; a question whose answer the
template can branch on becomes a guard. What cannot be written down is refused: then the shape has no program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, SupportsIndex

from turnmill.rendering.steps import Recorder, Symbolic, constant, refuse
from turnmill.rendering.tracked import MIXED, Tracked, concatenated, runs_of


class Atom(NamedTuple):
    """A piece of a symbol's text: a register's, or the template's own."""

    text: str
    register: int | None
    origin: int
    """Whose it is, also where it is empty; `MIXED` where that hangs on content."""


def symbol(recorder: Recorder, text: Tracked, atoms: Sequence[Atom]) -> Symbol:
    """A text made of these atoms."""
    made = str.__new__(Symbol, text)
    made.runs, made.base, made.recorder, made.atoms = text.runs, text, recorder, tuple(atoms)
    return made


def concatenation(parts: Sequence[Any]) -> Tracked:
    """The parts one after the other: a symbol where one is."""
    symbols = [part for part in parts if isinstance(part, Symbol)]
    text = concatenated([part.base if isinstance(part, Symbol) else part for part in parts])
    if not symbols:
        return text
    if any(part.recorder is not symbols[0].recorder for part in symbols):
        refuse("content is kept for later")
    return symbol(symbols[0].recorder, text, [atom for part in parts for atom in atoms_of(part)])


def atoms_of(part: Any) -> Iterable[Atom]:
    """A part's atoms; of the template's own text one for each writer."""
    if isinstance(part, Symbol):
        return part.atoms
    position, atoms = 0, []
    text = part if isinstance(part, str) else str(part)
    for length, origin in runs_of(text):
        atoms.append(Atom(str.__getitem__(text, slice(position, position + length)), None, origin))
        position += length
    return atoms


class Symbol(Tracked, Symbolic):
    """A tracked text that hangs on content."""

    __slots__ = ("atoms", "base", "recorder")
    atoms: tuple[Atom, ...]
    base: Tracked
    """The same text without a memory."""
    recorder: Recorder

    @property
    def register(self) -> int:
        """The register that holds the whole text."""
        if len(self.atoms) == 1 and self.atoms[0].register is not None:
            return self.atoms[0].register
        pattern = tuple(None if atom.register is not None else str.__str__(atom.text) for atom in self.atoms)
        registers = tuple(atom.register for atom in self.atoms if atom.register is not None)
        return self.recorder.register("joined", (pattern,), registers)

    @property
    def origin(self) -> int:
        """Whose it is: `MIXED` where a part that content leaves over could be another's."""
        origins = {atom.origin for atom in self.atoms}
        return origins.pop() if len(origins) == 1 else MIXED

    def made(self, text: str, name: str, *constants: Any) -> Symbol:
        """What an operation gives of this text."""
        register = self.recorder.register(name, constants, (self.register,))
        return symbol(self.recorder, Tracked(text), [Atom(text, register, self.origin)])

    def asked(self, answer: Any, name: str, *constants: Any) -> Any:
        """The answer to a question about this text."""
        return self.recorder.guard(name, constants, (self.register,), answer)

    def parts(self, found: Sequence[str], *call: Any) -> Parts:
        """The parts that a splitting method gives."""
        register = self.recorder.register("method", call, (self.register,))
        return Parts(self.recorder, register, self.origin, found)

    def __getitem__(self, key: SupportsIndex | slice) -> Symbol:
        if isinstance(key, slice):
            constant((key.start, key.stop, key.step))
        else:
            constant(key)
        return self.made(self.base[key], "item", key)

    def __add__(self, other: str) -> Tracked:
        return concatenation([self, other]) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> Tracked:
        return concatenation([other, self]) if isinstance(other, str) else NotImplemented

    def __bool__(self) -> bool:
        return bool(self.asked(str.__len__(self) > 0, "truth"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, str):
            return False
        answer = str.__eq__(self, other)
        if isinstance(other, Symbol):
            return bool(self.recorder.guard("same", (), (self.register, other.register), answer))
        return bool(self.asked(answer, "equals", constant(other)))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __contains__(self, needle: object) -> bool:
        plain = constant(needle)
        return bool(self.asked(str.__contains__(self, plain), "holds", plain))

    def __hash__(self) -> int:
        refuse("content is a key")

    def __iter__(self) -> Iterator[str]:
        refuse("the characters of content are walked")

    def _refused(self, *_: Any) -> NoReturn:
        refuse("content is ordered or formatted")

    __lt__ = __le__ = __gt__ = __ge__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refused


MAKING = (
    "capitalize", "casefold", "lower", "lstrip", "removeprefix", "removesuffix", "replace", "rstrip", "strip",
    "swapcase", "title", "upper",
)  # fmt: skip
SPLITTING = ("partition", "rpartition", "rsplit", "split", "splitlines")
ASKING = ("endswith", "isalnum", "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "isupper",
          "startswith")  # fmt: skip
MAX_REPLACEMENT = 100
"""Characters that a replacement may have: replays are not bounded as renders are."""
METHODS = frozenset({*MAKING, *SPLITTING, *ASKING})
"""What a template may call on content, with constants."""


def _recording(name: str) -> Callable[..., Any]:
    """A method of `Symbol` that records its call."""

    def method(self: Symbol, *arguments: Any) -> Any:
        call = (name, *map(constant, arguments))
        if name == "replace" and len(call[2]) > MAX_REPLACEMENT:
            refuse("a replacement that could make a text too long")
        found = getattr(self.base, name)(*arguments)
        if name in SPLITTING:
            return self.parts(found, *call)
        return self.asked(found, "method", *call) if name in ASKING else self.made(found, "method", *call)

    method.__name__ = name
    return method


for _name in METHODS:
    setattr(Symbol, _name, _recording(_name))


class Parts(Symbolic):
    """The parts of a split text."""

    def __init__(self, recorder: Recorder, register: int, origin: int, found: Sequence[str]) -> None:
        self._recorder, self._register, self._origin, self._found = recorder, register, origin, found

    def __getitem__(self, key: Any) -> Symbol:
        if type(key) is not int:
            refuse("parts of content are sliced")
        text = self._found[key]
        register = self._recorder.register("item", (key,), (self._register,))
        return symbol(self._recorder, Tracked(text), [Atom(text, register, self._origin)])

    def __len__(self) -> int:
        size: int = self._recorder.guard("length", (), (self._register,), len(self._found))
        return size

    def __iter__(self) -> Iterator[Symbol]:
        return iter([self[index] for index in range(len(self))])


class Length(int, Symbolic):
    """The length of a text: a number that can only be compared."""

    text: Symbol

    def _compared(self, compare: Callable[[int, Any], bool], other: Any) -> bool:
        return bool(self.text.asked(compare(str.__len__(self.text), constant(other)), "measured", compare, other))

    def __eq__(self, other: object) -> bool:
        return self._compared(operator.eq, other)

    def __ne__(self, other: object) -> bool:
        return self._compared(operator.ne, other)

    def __lt__(self, other: Any) -> bool:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> bool:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> bool:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> bool:
        return self._compared(operator.ge, other)

    def __bool__(self) -> bool:
        return bool(self.text)

    def _refused(self, *_: Any) -> NoReturn:
        refuse("the length of content is computed with")

    __str__ = __repr__ = __format__ = _refused

    __hash__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _refused
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __neg__ = __pos__ = __pow__ = __rpow__ = _refused


def length_of(text: Symbol) -> Length:
    """The length of a text, as a number that remembers it."""
    made = int.__new__(Length, str.__len__(text))
    made.text = text
    return made
