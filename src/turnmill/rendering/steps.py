"""Steps: what a template does with content, written down so that it can be done again with other content."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn


class Symbolic:
    """What hangs on content."""

    __slots__ = ()


class Refused(Exception):
    """The template does something with content that no program can do again."""


class _Made:
    """In place of an expected answer: the step makes a value."""


MADE = _Made()


class Step(NamedTuple):
    """One thing done again: a function of registers, whose value fills the next register or must be as expected."""

    function: Callable[..., Any]
    arguments: tuple[int, ...]
    expected: Any = MADE
    counts: bool = False
    """It only counts messages, which cannot fail."""
    name: str = ""
    """Of the operation."""
    constants: tuple[Any, ...] = ()


def _joined(pattern: tuple[str | None, ...]) -> Callable[..., str]:
    def join(*values: str) -> str:
        given = iter(values)
        return "".join(next(given) if part is None else part for part in pattern)

    return join


Bounds = tuple[tuple[int | None, int | None, int | None], ...]
"""Slices of the list of messages, one taken of the other: (start, stop, step) each."""


def walked(bounds: Bounds, messages: int) -> range:
    """The numbers of the messages that slices of so many leave, in order."""
    numbers = range(messages)
    for bound in bounds:
        numbers = numbers[slice(*bound)]
    return numbers


def _picked(bounds: Bounds) -> Callable[..., Any]:
    return lambda messages, index: messages[walked(bounds, len(messages))[index]]


def _has(bounds: Bounds) -> Callable[..., bool]:
    def has(messages: list[Any], index: int) -> bool:
        size = len(walked(bounds, len(messages)))
        return -size <= index < size

    return has


OPERATIONS: dict[str, Callable[..., Callable[..., Any]]] = {
    "method": operator.methodcaller,
    "item": operator.itemgetter,
    "joined": _joined,
    "json": lambda options: json.JSONEncoder(**dict(options)).encode,
    "parsed": lambda: json.loads,
    "truth": lambda: bool,
    "type": lambda: type,
    "scalar": lambda: repr,
    "listed": lambda: lambda *values: list(values),
    "keys": lambda: tuple,
    "length": lambda: len,
    "same": lambda: operator.eq,
    "equals": lambda other: lambda value: value == other,
    "holds": lambda needle: lambda value: needle in value,
    "within": lambda holder: lambda value: value in holder,
    "constant": lambda value: lambda: value,
    "picked": _picked,
    "has": _has,
    "counted": lambda bounds: lambda messages: len(walked(bounds, len(messages))),
    "computed": lambda function: function,
    "measured": lambda compare, other: lambda value: compare(len(value), other),
}
"""Name → what makes the function of a step from its constants."""


def run_steps(steps: Sequence[Step], inputs: Sequence[Any]) -> list[Any] | None:
    """All registers after the steps; None where a guard does not hold."""
    registers = list(inputs)
    try:
        for function, arguments, expected, *_ in steps:
            if len(arguments) == 1:
                value = function(registers[arguments[0]])
            else:
                value = function(*[registers[number] for number in arguments])
            if expected is MADE:
                registers.append(value)
            elif value != expected:
                return None
    except Exception:  # a step may raise only where the guards do not hold
        return None
    return registers


EXPRESSIONS = {
    "item": "{register}[{constant}]",
    "truth": "not not {register}",
    "type": "type({register})",
    "equals": "{register} == {constant}",
    "holds": "{constant} in {register}",
}
"""Name → what Python says without a call for what `OPERATIONS` makes a function of."""

Run = Callable[[Sequence[Any]], Sequence[Any] | None]
"""Inputs → all registers; None where a guard does not hold. It may raise where none would."""


def compiled(steps: Sequence[Step], inputs: int) -> Run:
    """The steps as one function, which is several times as fast as a walk over them.

    Its source names numbers of registers and steps alone: nothing that a template or a row says is part of it.

    Args:
        steps: of a program.
        inputs: registers that are filled before the first step.
    """
    known: dict[str, Any] = {}
    registers = [f"r{number}" for number in range(inputs)]
    lines = [f"def run(inputs):\n {', '.join(registers)}, = inputs"]
    for number, step in enumerate(steps):
        known |= {f"f{number}": step.function, f"e{number}": step.expected, f"k{number}": (*step.constants, None)[0]}
        given = [registers[argument] for argument in step.arguments]
        call = f"f{number}({', '.join(given)})"
        made = (
            EXPRESSIONS[step.name].format(register=given[0], constant=f"k{number}")
            if step.name in EXPRESSIONS
            else call
        )
        if step.expected is MADE:
            registers.append(f"r{len(registers)}")
            lines.append(f" {registers[-1]} = {made}")
        else:
            lines.append(f" if ({made}) != e{number}: return None")
    lines.append(f" return {', '.join(registers)},")
    exec("\n".join(lines), known)
    run: Run = known["run"]
    return run


def without_idle(steps: Sequence[Step], inputs: int, used: Iterable[int]) -> tuple[list[Step], dict[int, int]]:
    """The steps without those that count what nobody asks for, and old → new number of each register.

    Args:
        steps: of a program.
        inputs: registers that are filled before the first step.
        used: registers that are used behind the last one.
    """
    needed, register = set(used), inputs + sum(step.expected is MADE for step in steps)
    kept: list[tuple[int, Step]] = []
    for step in reversed(steps):
        register -= step.expected is MADE
        if step.expected is MADE and step.counts and register not in needed:
            continue
        needed.update(step.arguments)
        kept.append((register, step))
    kept.reverse()
    made = [number for number, step in kept if step.expected is MADE]
    numbers = {old: new for new, old in enumerate([*range(inputs), *made])}
    return [step._replace(arguments=tuple(numbers[one] for one in step.arguments)) for _, step in kept], numbers


class Recorder:
    """The steps of one program as they are recorded.

    Args:
        inputs: registers that are filled before the first step.

    Attributes:
        is_closed: nothing more may be asked: what the template keeps of it is of no use to another program.
    """

    def __init__(self, inputs: int) -> None:
        self.steps: list[Step] = []
        self.is_closed = False
        self._asked_last: tuple[Any, Any] | None = None
        """The guard that is the last step, and its answer, where it asks for a key."""
        self._registers = inputs
        self._known: dict[tuple[Any, ...], int] = {}

    def register(self, name: str, constants: tuple[Any, ...], arguments: tuple[int, ...]) -> int:
        """The register of what an operation makes of others; one for the same operation on the same registers."""
        key = self._key(name, constants, arguments)
        if key not in self._known:
            if name == "item" and self._asked_last == (self._key("? holds", constants, arguments), True):
                self.steps.pop()  # what is not there cannot be taken
            self._known[key] = self._registers
            self._registers += 1
            self._asked_last = None
            counts = name in ("constant", "counted") or (name == "computed" and constants[0] is not operator.mod)
            self.steps.append(Step(OPERATIONS[name](*constants), arguments, MADE, counts, name, constants))
        return self._known[key]

    def guard(self, name: str, constants: tuple[Any, ...], arguments: tuple[int, ...], answer: Any) -> Any:
        """The answer to a question, which must be the same when the steps are done again."""
        key = self._key(f"? {name}", constants, arguments)
        if key not in self._known:
            self._known[key] = -1
            self._asked_last = (key, answer) if constants and isinstance(constants[0], str) else None
            self.steps.append(Step(OPERATIONS[name](*constants), arguments, answer, False, name, constants))
        return answer

    def _key(self, name: str, constants: tuple[Any, ...], arguments: tuple[int, ...]) -> tuple[Any, ...]:
        if self.is_closed:
            refuse("content is kept for later")
        return name, repr(constants), arguments


def refuse(what: str) -> NoReturn:
    """Give up the program."""
    raise Refused(what)


def is_symbolic(value: Any) -> bool:
    """Whether a value, or one inside it, hangs on content."""
    if isinstance(value, Symbolic):
        return True
    if isinstance(value, dict):
        return any(map(is_symbolic, value.values())) or any(map(is_symbolic, value))
    return isinstance(value, list | tuple | set) and any(map(is_symbolic, value))


def constant(value: Any) -> Any:
    """A value that is the same for all content, plain.

    Raises:
        Refused: it hangs on content.
    """
    if is_symbolic(value):
        refuse("content is an argument")
    if isinstance(value, tuple):
        return tuple(map(constant, value))
    return str.__str__(value) if isinstance(value, str) else value
