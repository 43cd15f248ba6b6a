"""Values of JSON that are opened step by step: a call's arguments, a tool's definition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from turnmill.rendering.steps import Recorder, Symbolic, constant, refuse
from turnmill.rendering.symbols import Atom, Symbol, symbol
from turnmill.rendering.trace import Origin, Trace
from turnmill.rendering.tracked import Tracked, tracked


def json_symbol(recorder: Recorder, text: Tracked, register: int, options: Mapping[str, Any]) -> Symbol:
    """The JSON text of what a register holds."""
    pairs = tuple(sorted((name, constant(value)) for name, value in options.items()))
    register = recorder.register("json", (pairs,), (register,))
    return symbol(recorder, text, [Atom(text, register, text.runs[0][1])])


class Opened:
    """What opens a JSON value: where it lies, and whose it is."""

    def __init__(self, recorder: Recorder, trace: Trace, origin: Origin) -> None:
        self.recorder, self._trace, self._origin = recorder, trace, origin

    def admit(self, value: Any, register: int) -> Any:
        """A value as a template may see it: its type, and what is no text or container, guarded."""
        self.recorder.guard("type", (), (register,), str if isinstance(value, str) else type(value))
        if isinstance(value, str):
            known = self.text(value)
            return symbol(self.recorder, known, [Atom(known, register, self._trace.number(self._origin))])
        if isinstance(value, dict | list):
            made: Any = (SymbolDict if isinstance(value, dict) else SymbolList)(value)
            made.opened, made.register = self, register
            self._trace.know(made, self._origin)
            return made
        self.recorder.guard("scalar", (), (register,), repr(value))
        return value

    def text(self, text: str) -> Tracked:
        """A text of this value's writer."""
        return tracked(text, self._trace.number(self._origin))

    def json(self, value: SymbolDict | SymbolList, options: Mapping[str, Any]) -> Symbol:
        """The JSON text of a value."""
        return json_symbol(self.recorder, self.text(json.dumps(value.plain, **options)), value.register, options)


class Unprinted(Symbolic):
    """What no template may write as Python would: nothing would be asked."""

    __slots__ = ()

    def _refused(self, *_: Any) -> NoReturn:
        refuse("an object of content is printed")

    __str__ = __repr__ = __format__ = _refused


class SymbolDict(Unprinted, dict[str, Any]):
    """A JSON object, opened key by key."""

    opened: Opened
    register: int

    def _ask(self, name: str, answer: Any, *constants: Any) -> Any:
        return self.opened.recorder.guard(name, constants, (self.register,), answer)

    def __contains__(self, key: object) -> bool:
        return bool(self._ask("holds", dict.__contains__(self, constant(key)), constant(key)))

    def __getitem__(self, key: Any) -> Any:
        if key not in self:
            raise KeyError(key)
        plain = constant(key)
        register = self.opened.recorder.register("item", (plain,), (self.register,))
        return self.opened.admit(dict.__getitem__(self, plain), register)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key."""
        return self[key] if key in self else default  # noqa: SIM401  # this is what that would call

    def __len__(self) -> int:
        return int(self._ask("length", dict.__len__(self)))

    def __iter__(self) -> Iterator[str]:
        found = self._ask("keys", tuple(dict.keys(self)))
        return iter([self.opened.text(key) for key in found])

    @property
    def plain(self) -> dict[str, Any]:
        """The object itself."""
        return {key: dict.__getitem__(self, key) for key in dict.keys(self)}

    def keys(self) -> Any:
        """Its keys, in order."""
        return list(self)

    def values(self) -> Any:
        """Its values, in order."""
        return [self[key] for key in self]

    def items(self) -> Any:
        """Its keys and values, in order."""
        return [(key, self[key]) for key in self]

    def __eq__(self, other: object) -> bool:
        refuse("an object of content is compared")

    __hash__ = None


class SymbolList(Unprinted, list[Any]):
    """A JSON array, opened item by item."""

    opened: Opened
    register: int

    @property
    def plain(self) -> list[Any]:
        """The array itself."""
        return [list.__getitem__(self, index) for index in range(list.__len__(self))]

    def __len__(self) -> int:
        return int(self.opened.recorder.guard("length", (), (self.register,), list.__len__(self)))

    def __getitem__(self, key: Any) -> Any:
        if type(key) is not int:
            refuse("a list of content is sliced")
        register = self.opened.recorder.register("item", (key,), (self.register,))
        return self.opened.admit(list.__getitem__(self, key), register)

    def __iter__(self) -> Iterator[Any]:
        return iter([self[index] for index in range(len(self))])

    def __contains__(self, item: object) -> bool:
        plain = constant(item)
        return bool(self.opened.recorder.guard("holds", (plain,), (self.register,), plain in self.plain))

    def __eq__(self, other: object) -> bool:
        refuse("a list of content is compared")

    __hash__ = None
