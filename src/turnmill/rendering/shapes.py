"""The shapes of conversations that a template has rendered: how often each was seen, and its programs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnmill.rendering.fill import Program

MAX_SIGHTED = 4096
"""Shapes whose sights are counted before they are tried; the one unseen for longest is forgotten first."""
MAX_HELD = 100_000
"""Steps, pieces and messages that the shapes with programs hold together, some 250 bytes each; the shape unused for
longest is forgotten first."""


class Shape:
    """What is known of one shape.

    Args:
        key: what programs hang on beside their inputs.
        messages: how many it has.
        sights: how often it was seen before.

    Attributes:
        size: its messages, and the sizes of its programs.
    """

    def __init__(self, key: Hashable, messages: int, sights: int) -> None:
        self.key, self.size, self.sights = key, messages, sights
        self.is_refused = False
        self.programs: list[Program] = []


class Shapes:
    """The shapes of a template's rows. Most are seen once or twice: of those nothing is kept but how often.

    Attributes:
        tried: those that have programs, or were refused one, by their keys.
        held: their sizes together.
    """

    def __init__(self) -> None:
        self.tried: OrderedDict[Hashable, Shape] = OrderedDict()
        self.held = 0
        self._sights: OrderedDict[int, int] = OrderedDict()
        """By hash: of two shapes with one hash a program is tried too early, which harms nothing."""

    def seen(self, key: Hashable, messages: int) -> Shape:
        """The shape of a row of so many messages."""
        if key in self.tried:
            self.tried.move_to_end(key)
            return self.tried[key]
        number = hash(key)
        sights = self._sights.pop(number, 0)
        self._sights[number] = sights + 1
        if len(self._sights) > MAX_SIGHTED:
            self._sights.popitem(last=False)
        return Shape(key, messages, sights)

    def keep(self, shape: Shape, program: Program | None) -> None:
        """Keep a shape, and a program of it; None where it was refused one."""
        if shape.key not in self.tried:
            self._sights.pop(hash(shape.key), None)
            self.tried[shape.key] = shape
            self.held += shape.size
        if program is not None:
            shape.programs.append(program)
            shape.size += program.size
            self.held += program.size
        while self.held > MAX_HELD and len(self.tried) > 1:
            self.held -= self.tried.popitem(last=False)[1].size

    def clear(self) -> None:
        """Forget all of them."""
        self.tried.clear()
        self._sights.clear()
        self.held = 0
