"""Strings that remember who wrote them.

A `Tracked` is a `str` with runs: (length, origin) pairs that cover it. Every method computes the plain result with
`str`'s own method and derives the runs from lengths and positions, so the text can never be wrong, only an origin. An
origin is a number given out by `render.trace`; 0 is text of unknown origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex

Runs = tuple[tuple[int, int], ...]
"""(length in characters, origin) pairs; no length is 0, no two neighbours share an origin."""

UNKNOWN = 0
"""Origin of text that was not stamped: a plain string a template computed."""

MIXED = -1
"""Origin of text made of several writers' in a way that hides who wrote which part."""


def runs_of(text: str) -> Runs:
    """The runs of any string; a plain one is a single run of unknown origin."""
    if isinstance(text, Tracked):
        return text.runs
    return ((len(text), UNKNOWN),) if text else ()


def joined(parts: Iterable[Runs]) -> Runs:
    """Runs of the concatenation of texts with these runs."""
    merged: list[tuple[int, int]] = []
    for runs in parts:
        for length, origin in runs:
            if merged and merged[-1][1] == origin:
                merged[-1] = (merged[-1][0] + length, origin)
            else:
                merged.append((length, origin))
    return tuple(merged)


def sliced(runs: Runs, start: int, stop: int) -> Runs:
    """Runs of characters [start, stop), with 0 <= start <= stop <= length."""
    if start >= stop:
        return ()
    if len(runs) == 1:
        return ((stop - start, runs[0][1]),)
    kept: list[tuple[int, int]] = []
    position = 0
    for length, origin in runs:
        low, high = max(start, position), min(stop, position + length)
        if low < high:
            kept.append((high - low, origin))
        position += length
        if position >= stop:
            break
    return tuple(kept)


def tracked(text: str, origin: int) -> Tracked:
    """`text` as written whole by `origin`."""
    return _made(text, ((len(text), origin),) if text else ())


def concatenated(parts: Iterable[object]) -> Tracked:
    """The parts as strings, one after the other, origins kept."""
    texts = [part if isinstance(part, str) else str(part) for part in parts]
    return _made("".join(texts), joined(map(runs_of, texts)))


def _made(text: str, runs: Runs) -> Tracked:
    made = str.__new__(Tracked, text)
    made.runs = runs
    return made


class Tracked(str):
    """A string whose `runs` say where each character came from."""

    __slots__ = ("runs",)
    runs: Runs

    def __new__(cls, text: object = "") -> Tracked:
        """Text of unknown origin, or the same string where it is tracked already."""
        if isinstance(text, Tracked):
            return text
        return _made(str(text), runs_of(str(text)))

    def __str__(self) -> str:
        return self  # a subclass may be returned: `str(x)` and jinja's soft_str keep the origins for free

    def __reduce__(self) -> tuple[Any, ...]:
        return (str, (str.__str__(self),))

    def _between(self, start: int, stop: int) -> Tracked:
        return _made(str.__getitem__(self, slice(start, stop)), sliced(self.runs, start, stop))

    def _whole(self, text: str) -> Tracked:
        """A changed text of the same length keeps its runs; of another length it must be of one origin."""
        if len(text) == len(self):
            return _made(text, self.runs)
        return tracked(text, self.runs[0][1] if len(self.runs) == 1 else MIXED if self.runs else UNKNOWN)

    def __getitem__(self, key: SupportsIndex | slice) -> Tracked:
        text = str.__getitem__(self, key)
        if not isinstance(key, slice):
            index = key.__index__() % len(self)
            return _made(text, sliced(self.runs, index, index + 1))
        start, stop, step = key.indices(len(self))
        if step == 1:
            return _made(text, sliced(self.runs, start, max(start, stop)))
        return _made(text, joined(sliced(self.runs, i, i + 1) for i in range(start, stop, step)))

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))

    def __add__(self, other: str) -> Tracked:
        if not isinstance(other, str):
            return NotImplemented
        return _made(str.__add__(self, other), joined((self.runs, runs_of(other))))

    def __radd__(self, other: str) -> Tracked:
        if not isinstance(other, str):
            return NotImplemented
        return _made(str.__add__(other, self), joined((runs_of(other), self.runs)))

    def __mul__(self, count: SupportsIndex) -> Tracked:
        return _made(str.__mul__(self, count), joined([self.runs] * count.__index__()))

    __rmul__ = __mul__

    def strip(self, chars: str | None = None, /) -> Tracked:
        return self.lstrip(chars).rstrip(chars)

    def lstrip(self, chars: str | None = None, /) -> Tracked:
        return self._between(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> Tracked:
        return self._between(0, len(str.rstrip(self, chars)))

    def removeprefix(self, prefix: str, /) -> Tracked:
        return self._between(len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> Tracked:
        return self._between(0, len(str.removesuffix(self, suffix)))

    def _located(self, parts: list[str]) -> list[str]:
        """The parts, found in order in this text, with their runs."""
        found: list[str] = []
        position = 0
        for part in parts:
            position = str.index(self, part, position)
            found.append(self._between(position, position + len(part)))
            position += len(part)
        return found

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._separated(str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._separated(str.rsplit(self, sep, maxsplit), sep)

    def _separated(self, parts: list[str], sep: str | None) -> list[str]:
        if sep is None:
            return self._located(parts)
        found: list[str] = []
        position = 0
        for part in parts:
            found.append(self._between(position, position + len(part)))
            position += len(part) + len(sep)
        return found

    def splitlines(self, keepends: bool = False) -> list[str]:
        found: list[str] = []
        position = 0
        for bare, whole in zip(str.splitlines(self), str.splitlines(self, keepends=True), strict=True):
            found.append(self._between(position, position + len(whole if keepends else bare)))
            position += len(whole)
        return found

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        head, middle, _ = str.partition(self, sep)
        return self._parted(len(head), len(head) + len(middle))

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        head, middle, _ = str.rpartition(self, sep)
        return self._parted(len(head), len(head) + len(middle))

    def _parted(self, first: int, second: int) -> tuple[str, str, str]:
        return self._between(0, first), self._between(first, second), self._between(second, len(self))

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Tracked:
        """The new text gets the origin of what it replaced."""
        text = str.replace(self, old, new, count)
        if not old or text == self:
            return self._whole(text)
        pieces = str.split(self, old, count)
        parts: list[Runs] = []
        position = 0
        for index, piece in enumerate(pieces):
            parts.append(sliced(self.runs, position, position + len(piece)))
            position += len(piece)
            if index < len(pieces) - 1:
                origin = sliced(self.runs, position, position + 1)[0][1]
                parts.append(((len(new), origin),) if new else ())
                position += len(old)
        return _made(text, joined(parts))

    def join(self, parts: Iterable[str], /) -> Tracked:
        texts = list(parts)
        runs: list[Runs] = []
        for index, text in enumerate(texts):
            if index:
                runs.append(self.runs)
            runs.append(runs_of(text))
        return _made(str.join(self, texts), joined(runs))

    def upper(self) -> Tracked:
        return self._whole(str.upper(self))

    def lower(self) -> Tracked:
        return self._whole(str.lower(self))

    def capitalize(self) -> Tracked:
        return self._whole(str.capitalize(self))

    def title(self) -> Tracked:
        return self._whole(str.title(self))

    def casefold(self) -> Tracked:
        return self._whole(str.casefold(self))

    def swapcase(self) -> Tracked:
        return self._whole(str.swapcase(self))


def origins_within(value: Any) -> Iterator[int]:
    """The origin of every tracked string in a value, dicts and lists walked."""
    if isinstance(value, Tracked):
        yield from (origin for _, origin in value.runs)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from origins_within(key)
            yield from origins_within(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from origins_within(item)


# so that a template's error reads as it would on a plain string
Tracked.__module__, Tracked.__name__, Tracked.__qualname__ = "builtins", "str", "str"
